"""Every page of the site in a real browser, opened from disk and without a network: nothing is
wider than the window, no error, no missing picture, formulas are typeset, and search answers.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser import WIDTHS, Page

pytestmark = [pytest.mark.slow, pytest.mark.browser]


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
