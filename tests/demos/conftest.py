"""What every demonstration's page must be: one document that loads nothing, can be read aloud,
and opens in a real browser.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

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


@pytest.fixture
def open_page(tmp_path: Path) -> Callable[[str], int]:
    """Opens a page in a browser with a small window: no sideways scrolling, no broken picture, no
    request to anywhere.

    It returns the bytes of a screenshot.
    """
    browser = next(
        (
            found
            for name in ("chromium", "chromium-browser", "google-chrome")
            if (found := shutil.which(name))
        ),
        None,
    )
    if browser is None:
        pytest.skip("no chromium on this machine: the page was not opened in a browser")
    quiet = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-extensions",
    ]
    command = [
        browser,
        *quiet,
        f"--user-data-dir={tmp_path / 'profile'}",
        "--window-size=420,900",
        "--virtual-time-budget=2000",
    ]
    # The probe is added to the copy under test alone: it writes what the browser measured into the
    # page's title.
    probe = (
        "<script>addEventListener('load',()=>{document.title=JSON.stringify([document.documentElement.scrollWidth,innerWidth,"
        "[...document.images].filter(i=>!i.complete||!i.naturalWidth).length,performance.getEntriesByType('resource')"
        ".filter(e=>!e.name.startsWith('data:')).length])})</script>"
    )

    def opens(html: str) -> int:
        (tmp_path / "page.html").write_text(html, encoding="utf-8")
        (tmp_path / "probed.html").write_text(
            html.replace("</body>", probe + "</body>"), encoding="utf-8"
        )
        shown = subprocess.run(
            [*command, "--dump-dom", f"file://{tmp_path}/probed.html"],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        found = re.search(r"<title>\[(\d+),(\d+),(\d+),(\d+)\]</title>", shown.stdout)
        assert found, shown.stderr[-2000:]
        wide, window, broken, requests = map(int, found.groups())
        assert wide <= window, "the page scrolls sideways on a small screen"
        assert (broken, requests) == (0, 0)
        picture = tmp_path / "page.png"
        subprocess.run(
            [*command, f"--screenshot={picture}", f"file://{tmp_path}/page.html"],
            capture_output=True,
            timeout=120,
            check=True,
        )
        return picture.stat().st_size

    return opens
