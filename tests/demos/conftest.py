"""What every demonstration's page must be: one document that loads nothing, can be read aloud,
and opens in a real browser.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from tests.browser import WIDTHS, chromium

Element = tuple[str, dict[str, str | None]]

VOID = {"meta", "link", "img", "br", "line", "rect", "circle", "path", "polyline"}


class Reader(HTMLParser):
    """Collects elements, and checks that every one is closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="session")
def read_page() -> Callable[[str], list[Element]]:
    """Checks that a page stands alone and can be read aloud; its elements."""

    def read(html: str) -> list[Element]:
        reader = Reader()
        reader.feed(html)
        assert reader.open == []
        assert html.startswith("<!doctype html>")
        assert ("html", {"lang": "en"}) in reader.elements
        assert not re.search(r"https?:|@import|url\(|<script|javascript:", html)
        for _, attributes in reader.elements:
            for key in ("src", "href"):
                assert (attributes.get(key) or "data:").startswith(("data:", "#"))
        headings = [int(tag[1]) for tag, _ in reader.elements if re.fullmatch(r"h\d", tag)]
        assert headings[0] == 1
        assert headings.count(1) == 1
        assert all(after - before <= 1 for before, after in pairwise(headings))
        names = [attributes["id"] for _, attributes in reader.elements if "id" in attributes]
        assert len(names) == len(set(names))
        pointed = {
            attributes["aria-labelledby"]
            for _, attributes in reader.elements
            if "aria-labelledby" in attributes
        }
        assert {name for names in pointed for name in (names or "").split()} <= set(names)
        assert all(attributes["alt"] for tag, attributes in reader.elements if tag == "img")
        assert all(attributes["scope"] for tag, attributes in reader.elements if tag == "th")
        return reader.elements

    return read


@pytest.fixture
def open_page(tmp_path: Path) -> Callable[[str], int]:
    """Opens a page in a browser, in a wide and a narrow window: no sideways scrolling, no broken
    picture, no error, no request to anywhere.

    It returns the bytes of a screenshot.
    """

    def opens(html: str) -> int:
        page, picture = tmp_path / "page.html", tmp_path / "page.png"
        page.write_text(html, encoding="utf-8")
        with chromium(tmp_path / "profile") as browser:
            for width in WIDTHS:
                assert browser.faults(page, width) == []
                assert {each for each in browser.requests if not each.startswith("data:")} == {
                    f"file://{page}"
                }
            browser.picture(picture)
        return picture.stat().st_size

    return opens
