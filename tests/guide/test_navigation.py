"""The shared tree of pages is, to the last byte, what Sphinx resolves for every page by itself."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sphinx")

from sphinx.application import Sphinx

from guide import navigation

PAGES = {
    "index": ("folder/index", "alone"),
    "alone": (),
    "folder/index": ("one", "two"),
    "folder/one": (),
    "folder/two": ("below/three",),
    "folder/below/three": (),
}
WHOLE = {"collapse": False, "titles_only": True, "maxdepth": -1, "includehidden": True}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "conf.py").touch()
    for name, below in PAGES.items():
        page = tmp_path / f"{name}.rst"
        page.parent.mkdir(parents=True, exist_ok=True)
        tree = "".join(f"   {each}\n" for each in below)
        section = f"\nSection\n-------\n\n.. toctree::\n   :hidden:\n\n{tree}" if tree else ""
        page.write_text(f"Page {page.stem}\n==========\n{section}")
    return tmp_path


def test_every_page_has_the_tree_that_it_had(project: Path) -> None:
    seen: dict[str, list[str]] = {}

    def compare(app: Any, page: str, template: str, context: Any, tree: Any) -> None:
        options = (WHOLE, {**WHOLE, "collapse": True}, {**WHOLE, "titles_only": False})
        before = [context["toctree"](**each) for each in options]
        navigation.share(app, page, template, context, tree)
        assert [context["toctree"](**each) for each in options] == before
        seen[page] = before

    place = str(project)
    app = Sphinx(place, place, f"{place}/out", f"{place}/read", "html", status=io.StringIO())
    app.connect("html-page-context", compare)
    app.build()
    assert app.statuscode == 0
    assert set(PAGES) < set(seen)
    assert seen["alone"][0].count("current") == 3  # the list, the entry and its link
    assert seen["folder/below/three"][0].count("current") == 7
