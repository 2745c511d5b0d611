"""What docstrings and pages cite is in the bibliography, word for word."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap

from guide.bibliography import works
from tests.source import ROOT, trees


def section(doc: str, head: str) -> str:
    """The text below ``head:`` in a docstring, dedented; "" where there is none."""
    match = re.search(rf"^{head}:\n((?:(?: .*)?\n|\Z)+)", inspect.cleandoc(doc) + "\n", re.M)
    return textwrap.dedent(match[1]).strip() if match else ""


def entries(text: str) -> list[str]:
    """The items of a References section, one line each."""
    return [" ".join(item.split()) for item in re.split(r"^- ", text, flags=re.M) if item.strip()]


def cited(item: str) -> tuple[str, str, str] | None:
    """First author, year and title of a reference, or None for a pointer into this project."""
    match = re.match(r'([^("]+?) \((\d{4})\), "(.+?)", ', item)
    if not match:
        return None
    authors = re.sub(r" et al\.$", "", match[1])
    return re.split(r", | and ", authors)[0], match[2], match[3]


def identifier(fields: dict[str, str]) -> str:
    """What a reference to an entry ends with, details aside."""
    if "doi" in fields:
        return f"doi:{fields['doi']}"
    if "eprint" in fields:
        return f"arXiv:{fields['eprint']}"
    return fields.get("booktitle") or fields.get("journal") or fields["publisher"]


def wrong_citation(item: str) -> str | None:
    """What is wrong with one reference, or None."""
    work = cited(item)
    if work is None:
        page = re.search(r"docs/[\w-]+\.md", item)
        if page and (ROOT / page[0]).is_file():
            return None
        return f"neither a citation nor a page of docs: {item}"
    author, year, title = work
    same = [
        fields
        for fields in works().values()
        if (fields["author"].split(",")[0], fields["year"]) == (author, year)
        and fields["title"] == title
    ]
    if len(same) != 1:
        return f"not in the bibliography: {item}"
    if identifier(same[0]) not in item:
        return f"expected {identifier(same[0])!r}: {item}"
    return None


def test_every_citation_is_in_the_works() -> None:
    items = [
        item
        for name, tree in trees().items()
        if name.startswith("src/")
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
        for item in entries(section(ast.get_docstring(node) or "", "References"))
    ]
    assert len(items) > 150
    assert [wrong for wrong in map(wrong_citation, items) if wrong] == []
