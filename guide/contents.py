"""Which pages there are, in which order: the table of contents of the site.

Pages of docs/ are plain Markdown that GitHub shows too, so the directives that make the table of
contents are added where the site is staged.
"""

from __future__ import annotations

from pathlib import Path

CONTENTS: dict[str, tuple[str, ...]] = {
    "index": (
        "start/index",
        "tutorials/index",
        "choose/index",
        "operate",
        "reference/index",
        "theory",
        "results/README",
    ),
    "start/index": (
        "start/rows",
        "start/records",
        "start/queries",
        "start/hospital",
        "start/manager",
        "questions/index",
    ),
    "choose/index": (
        "choose/epsilon",
        "choose/radius",
        "choose/method",
        "choose/adjacency",
        "choose/limits",
    ),
    "operate": ("service", "client", "fleet", "ledger", "threats", "size"),
    "theory": (
        "guarantees",
        "mechanisms",
        "noise",
        "certificates",
        "exact-search",
        "milp",
        "label-tables",
        "training",
        "power",
        "certified",
        "votes",
        "private-knn",
        "private-knn-accounting",
        "shuffling",
        "ledger-inside",
    ),
    "results/README": ("benchmarks", "planted-faults"),
    "questions/index": (
        "questions/epsilon",
        "questions/accuracy",
        "questions/columns",
        "questions/restart",
        "questions/publish",
        "questions/not-said",
    ),
    "reference/index": (
        "reference/api/index",
        "reference/commands",
        "reference/settings",
        "reference/errors",
        "reference/http",
        "bundles",
        "README",
        "glossary",
        "bibliography",
        "changelog",
    ),
}
"""Page to the pages below it, without the pages of docs/README.md and of tutorials/."""

FIRST = "tutorials/index"
"""The page whose pages are all others of its folder, by name."""


def below(page: str, docs: Path) -> list[str]:
    """The pages below ``page``, in order.

    Every page that stands in ``docs`` and in no list is below README, the list of all pages.
    """
    if page == FIRST:
        return sorted(
            f"tutorials/{path.stem}"
            for path in docs.glob("tutorials/*.md")
            if path.stem not in ("index", "README")
        )
    if page == "README":
        return _others(docs)
    own = [name for name in _results(docs) if name != page] if page == "results/README" else []
    return [*own, *CONTENTS.get(page, ())]


def _others(docs: Path) -> list[str]:
    listed = {page for pages in CONTENTS.values() for page in pages} | {"index"}
    own = sorted(path.stem for path in docs.glob("*.md"))
    return [name for name in own if name not in listed]


def _results(docs: Path) -> list[str]:
    return sorted(
        path.relative_to(docs).with_suffix("").as_posix() for path in docs.glob("results/**/*.md")
    )


def with_contents(page: str, text: str, docs: Path) -> str:
    """``text`` of ``page`` with the table of contents that the site needs."""
    pages = below(page, docs)
    if not pages:
        return text
    here = page.rsplit("/", 1)[0] + "/" if "/" in page else ""
    up = "../" * here.count("/")
    names = [name.removeprefix(here) if name.startswith(here) else up + name for name in pages]
    depth = ":hidden:\n" if page != "results/README" else ":hidden:\n:maxdepth: 1\n"
    return f"{text.rstrip()}\n\n```{{toctree}}\n{depth}\n" + "\n".join(names) + "\n```\n"
