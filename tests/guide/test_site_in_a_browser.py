"""Every page of the site in a real browser, opened from disk and without a network: nothing is
wider than the window, no error, no missing picture, formulas are typeset, and search answers.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser import WIDTHS, Page

pytestmark = [pytest.mark.slow, pytest.mark.browser]

QUESTIONS = {
    "Which epsilon should I take?": ("which epsilon", "choose epsilon"),
    "Why is accuracy low?": ("why is accuracy low", "low accuracy"),
    "How do I use my own columns?": ("own columns", "how do I use my own columns"),
    "Do budgets survive a restart?": ("budgets survive restart", "restart"),
    "What may I publish?": ("what may I publish", "publish"),
    "What does the guarantee not say?": (
        "what does the guarantee not say",
        "guarantee not say",
    ),
}
"""Sections of the page of questions, and what people type who look for them."""


SAMPLE = (
    "index",
    "start/hospital",
    "tutorials/03-label-queries",
    "choose/epsilon",
    "choose/method",
    "choose/adjacency",
    "reference/settings",
    "reference/api/reticent.mechanisms.LaplaceMechanism",
    "results/posthoc-digits",
    "mechanisms",
    "search",
)
"""What is looked at without `--soak`."""


def faults_of(browser: Page, pages: list[Path], width: int) -> dict[str, list[str]]:
    """Faults by page, of those that have any."""
    found = {page.name: browser.faults(page, width) for page in pages}
    return {name: wrong for name, wrong in found.items() if wrong}


@pytest.mark.parametrize("width", WIDTHS)
def test_pages_open_from_disk(site: Path, browser: Page, width: int) -> None:
    assert faults_of(browser, [site / f"{name}.html" for name in SAMPLE], width) == {}


@pytest.mark.soak
@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_opens_from_disk(site: Path, browser: Page, width: int) -> None:
    pages = sorted(site.glob("**/*.html"))
    assert len(pages) > 300
    assert faults_of(browser, pages, width) == {}


def test_formulas_are_typeset_at_all(site: Path, browser: Page) -> None:
    assert browser.faults(site / "choose" / "epsilon.html", 1200) == []
    assert browser.run("document.querySelectorAll('mjx-container svg').length") >= 6


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("<p>a short line</p>", ""),
        ("<p style='width: 2000px'>a long line</p>", "pixels wide"),
        ("<img src='nowhere.png' alt=''>", "missing picture"),
        ("<script>nowhere()</script>", "error"),
        ("<script>console.error('so')</script>", "error"),
        ("<script src='https://example.org/x.js'></script>", "loads https://example.org"),
        ("<span class='math'>x^2</span>", "formulas"),
    ],
)
def test_faults_are_found(tmp_path: Path, browser: Page, body: str, fault: str) -> None:
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><meta name='viewport' content='width=device-width'>{body}")
    found = browser.faults(page, 390)
    assert bool(found) is bool(fault)
    assert fault in " ".join(found)


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_first_hit_answers(site: Path, browser: Page, question: str) -> None:
    for words in QUESTIONS[question]:
        browser.open(f"file://{site / 'search.html'}?q={words.replace(' ', '+')}")
        hits = browser.run(HITS)
        assert hits, words
        assert question in hits[0], (words, hits)


HITS = """
(async () => {
  const done = () => /found|did not match/.test(
    document.querySelector('#search-results .search-summary')?.textContent || '');
  for (let waited = 0; waited < 10000 && !done(); waited += 50)
    await new Promise(resolve => setTimeout(resolve, 50));
  return [...document.querySelectorAll('#search-results ul.search > li > a')]
    .slice(0, 3).map(a => a.textContent);
})()
"""
