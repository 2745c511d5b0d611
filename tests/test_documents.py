"""What the documents point at is there: links, modules, benchmarks, commands, and the names that
examples import.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
from functools import cache
from pathlib import Path

import typer.main

from reticent.cli.main import app

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
SOURCES = [*PAGES, *sorted(ROOT.glob("src/**/*.py")), *sorted(ROOT.glob("papers/**/*.py"))]


@cache
def anchors(page: Path) -> set[str]:
    """Anchors of the headings of a page, as GitHub makes them."""
    heads = re.findall(r"^#+ +(.*)$", without_code(page), flags=re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", head).lower()).strip().replace(" ", "-")
        for head in heads
    }


@cache
def without_code(page: Path) -> str:
    return re.sub(
        r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a page in one language."""
    return re.findall(
        rf"^```{language}\n(.*?)^```$",
        page.read_text(encoding="utf-8"),
        flags=re.MULTILINE | re.DOTALL,
    )


def test_links_lead_somewhere() -> None:
    lost = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page)):
            if target.startswith("https://"):
                continue
            name, _, anchor = target.partition("#")
            place = (page.parent / name).resolve() if name else page
            if not place.exists() or (anchor and anchor not in anchors(place)):
                lost.append((page.relative_to(ROOT), target))
    assert lost == []


def test_files_that_are_named_are_there() -> None:
    named = {
        path
        for source in SOURCES
        for path in re.findall(
            r"\b(?:tests|src|papers|benchmarks)/[\w/]+\.py", source.read_text(encoding="utf-8")
        )
    }
    assert len(named) > 10
    assert [path for path in named if not (ROOT / path).is_file()] == []


def test_modules_that_are_named_can_be_run() -> None:
    modules = set()
    for source in SOURCES:
        text = " ".join(source.read_text(encoding="utf-8").split())
        modules |= set(re.findall(r"python3? -m ((?:reticent|papers)(?:\.\w+)+)", text))
    assert len(modules) > 10
    for module in modules:
        assert callable(importlib.import_module(module).main), module


def test_commands_are_those_of_the_command_line() -> None:
    root = typer.main.get_command(app)
    found = set()
    for page in PAGES:
        lines = page.read_text(encoding="utf-8")
        for words in re.findall(
            r"(?:^|`|^\$ )(?:reticent|python3 run\.py (?=demo)) ?([a-z][a-z -]*)",
            lines,
            re.MULTILINE,
        ):
            command = root
            for word in words.split():
                below = getattr(command, "commands", None)  # a group has some, a command has none
                if below is None or word.startswith("-"):
                    break
                assert word in below, f"{page.name}: {words}"
                command = below[word]
            found.add(command.name)
    assert len(found) > 20


def test_examples_import_what_exists() -> None:
    lost = [
        (page.relative_to(ROOT), node.module, name.name)
        for page in PAGES
        for block in blocks(page, "python")
        for node in ast.walk(ast.parse(block))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "reticent"
        for name in node.names
        if not offers(node.module or "", name.name)
    ]
    assert lost == []


def offers(module: str, name: str) -> bool:
    """Whether ``from module import name`` works: an attribute, or a module of the package."""
    if hasattr(importlib.import_module(module), name):
        return True
    return importlib.util.find_spec(f"{module}.{name}") is not None


def test_every_page_of_results_is_found_from_their_index() -> None:
    folder = ROOT / "docs" / "results"
    pages = set(folder.glob("**/*.md"))
    reached, waiting = set(), [folder / "README.md"]
    while waiting:
        page = waiting.pop()
        reached.add(page)
        for target in re.findall(r"\]\(([^)\s#]+)", without_code(page)):
            place = (page.parent / target).resolve()
            if place in pages - reached:
                waiting.append(place)
    assert len(pages) > 40
    assert pages - reached == set()
