"""The literature of the project, from docs/bibliography.bib to a page with one anchor a work."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"

Fields = dict[str, str]

_ENTRY = re.compile(r"\s*@(\w+)\{(\w+),\n((?:  \w+ = \{.+\},\n)+)\}\n*")


@cache
def works() -> dict[str, Fields]:
    """Fields of every entry, by its key; "type" is the kind of the entry.

    Raises:
        ValueError: what is no BibTeX of the one form that is used there, or a key that is there
            twice.
    """
    text = (DOCS / "bibliography.bib").read_text(encoding="utf-8")
    text = re.sub(r"^%.*\n", "", text, flags=re.M)
    found: dict[str, Fields] = {}
    place = 0
    while place < len(text):
        match = _ENTRY.match(text, place)
        if match is None:
            raise ValueError(f"not BibTeX: {text[place : place + 60]!r}")
        if match[2] in found:
            raise ValueError(f"key={match[2]!r} is there twice")
        found[match[2]] = {
            "type": match[1],
            **dict(re.findall(r"^  (\w+) = \{(.+)\},$", match[3], re.M)),
        }
        place = match.end()
    return found


def key_of(authors: str, year: str, title: str) -> str | None:
    """Key of the work that a docstring cites by authors, year and title; None where there is none.

    Example:
        >>> key_of("Mironov", "2017", "Rényi differential privacy")
        'mironov2017'
    """
    first = re.split(r", | and | et al", authors)[0]
    found = [
        key
        for key, fields in works().items()
        if fields["author"].split(",")[0] == first
        and fields["year"] == year
        and fields["title"] == title
    ]
    return found[0] if len(found) == 1 else None


def reference(fields: Fields) -> str:
    """One work in a line of Markdown: authors, year, title, where it appeared, a link."""
    where = fields.get("journal") or fields.get("booktitle") or fields.get("publisher") or ""
    number = f" {fields['volume']}" if "volume" in fields and "journal" in fields else ""
    parts = [f'{authors(fields["author"])} ({fields["year"]}), "{fields["title"]}"']
    if where:
        parts.append(f"*{where}*{number}")
    return ", ".join([*parts, *links(fields)]) + "."


def authors(names: str) -> str:
    """BibTeX's "Last, First and Last, First" as "Last, Last and Last"."""
    last = [name.split(",")[0] for name in names.split(" and ")]
    shown = ["others" if name == "others" else name for name in last]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def links(fields: Fields) -> list[str]:
    """Links to a work, by whatever identifies it."""
    found = []
    if "doi" in fields:
        found.append(f"[doi:{fields['doi']}](https://doi.org/{fields['doi']})")
    if "eprint" in fields:
        found.append(f"[arXiv:{fields['eprint']}](https://arxiv.org/abs/{fields['eprint']})")
    if "url" in fields:
        found.append(f"<{fields['url']}>")
    return found


def page() -> str:
    """docs/bibliography.md: one heading for each work, so that every page can link to it."""
    entries = [f"## {key}\n\n{reference(fields)}\n" for key, fields in works().items()]
    return "\n".join([_INTRODUCTION, *entries])


_INTRODUCTION = """# Literature

All that pages and docstrings of this project rest on, by first author and year. Made by
`python -m guide.written` from [bibliography.bib](bibliography.bib), the file to cite from.
"""
