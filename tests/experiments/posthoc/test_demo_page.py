"""The page stands alone, can be read aloud, holds the computed figures, and opens in a real browser."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from reticent.experiments.posthoc.demo import OURS, at
from reticent.experiments.posthoc.demo_page import page

VOID = {"meta", "link", "img", "br", "line", "rect", "circle", "path", "polyline"}


class Reader(HTMLParser):
    """Collects elements, and checks that every one is closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def html(tiny_outcome) -> str:
    return page(tiny_outcome).replace("\u00a0", " ")


@pytest.fixture(scope="module")
def elements(html: str) -> list[tuple[str, dict[str, str | None]]]:
    reader = Reader()
    reader.feed(html)
    assert reader.open == []
    return reader.elements


def test_nothing_is_loaded_from_anywhere(html, elements):
    assert not re.search(r"https?:|@import|url\(|<script|javascript:", html)
    for _, attributes in elements:
        for name in ("src", "href"):
            assert (attributes.get(name) or "data:").startswith(("data:", "#"))


def test_it_can_be_read_aloud(elements):
    assert ("html", {"lang": "en"}) in elements
    images = [attributes for tag, attributes in elements if tag == "img"]
    assert len(images) > 50
    assert all(attributes["alt"] for attributes in images)
    headings = [int(tag[1]) for tag, _ in elements if re.fullmatch(r"h\d", tag)]
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(headings))
    names = [attributes["id"] for _, attributes in elements if "id" in attributes]
    assert len(names) == len(set(names))
    pointed = {attributes["aria-labelledby"] for _, attributes in elements if "aria-labelledby" in attributes}
    assert {name for names in pointed for name in names.split()} <= set(names)


def test_its_figures_are_the_computed_ones(html, tiny_outcome):
    results = tiny_outcome.results
    row = at(results, OURS, 8.0)
    assert f"<b>{100 * row['accuracy']:.0f} %</b>" in html
    assert f"{100 * row['accuracy']:.1f} ± {196 * row['standard_error']:.1f}" in html
    for attack in results["attacks"]:
        assert f"{attack['ssim']:.3f}" in html
    card = tiny_outcome.encoder.card()
    for sentence in (*card.assumptions, *card.not_protected):
        assert sentence.replace("'", "&#x27;") in html


def test_it_never_claims_more_than_is_proved(html):
    assert "this is not differential privacy of the whole picture" in " ".join(html.split())
    assert not re.search(r"picture is (differentially )?private|fully anonymous|100 % private", html)


@pytest.mark.browser
def test_it_opens_in_a_browser(html, tmp_path: Path):
    browser = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
    if browser is None:
        pytest.skip("no chromium on this machine: the page was not opened in a browser")
    (tmp_path / "page.html").write_text(html, encoding="utf-8")
    quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-extensions"]
    command = [browser, *quiet, f"--user-data-dir={tmp_path / 'profile'}", "--window-size=420,900", "--virtual-time-budget=2000"]
    # The probe is added to the copy under test alone: it writes what the browser measured into the page's title.
    probe = (
        "<script>addEventListener('load',()=>{document.title=JSON.stringify([document.documentElement.scrollWidth,innerWidth,"
        "[...document.images].filter(i=>!i.complete||!i.naturalWidth).length,performance.getEntriesByType('resource')"
        ".filter(e=>!e.name.startsWith('data:')).length])})</script>"
    )
    (tmp_path / "probed.html").write_text(html.replace("</body>", probe + "</body>"), encoding="utf-8")
    shown = subprocess.run(
        [*command, "--dump-dom", f"file://{tmp_path}/probed.html"], capture_output=True, text=True, timeout=120, check=False
    )
    found = re.search(r"<title>\[(\d+),(\d+),(\d+),(\d+)\]</title>", shown.stdout)
    assert found, shown.stderr[-2000:]
    wide, window, broken, requests = map(int, found.groups())
    assert wide <= window, "the page scrolls sideways on a small screen"
    assert (broken, requests) == (0, 0)
    picture = tmp_path / "page.png"
    subprocess.run(
        [*command, f"--screenshot={picture}", f"file://{tmp_path}/page.html"], capture_output=True, timeout=120, check=True
    )
    assert picture.stat().st_size > 10_000
