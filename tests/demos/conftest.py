"""What every demonstration's page must be: one document that loads nothing, can be read aloud,
and opens in a real browser.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import pairwise

import pytest

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
