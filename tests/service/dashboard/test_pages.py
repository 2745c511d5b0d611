"""The pages in a real browser: on a desk, on a phone, by keyboard alone, and without scripts."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from tests.browser import Page
from tests.service.dashboard.conftest import Watched

PAGES = ("", "/budgets", "/entries", "/keys", "/verification", "/bundles/records", "/bundles/rows")

pytestmark = pytest.mark.browser


def sign_in(page: Page, watched: Watched) -> None:
    """By keyboard: the field has the focus already."""
    page.open(watched.url)
    assert page.focus().startswith("INPUT key")
    page.write(watched.running.owner)
    page.press("Enter")
    page.wait()


@pytest.mark.parametrize("width", [1200, 390])
def test_every_page_fits_its_window_and_loads_nothing_else(
    page: Page, watched: Watched, width: int
) -> None:
    page.size(width)
    sign_in(page, watched)
    for place in PAGES:
        page.open(watched.url + place)
        assert page.run("document.documentElement.scrollWidth <= innerWidth"), place
        assert page.run("document.querySelectorAll('h1').length") == 1
        levels = page.run("[...document.querySelectorAll('h1,h2,h3')].map(e => +e.tagName[1])")
        assert all(later - earlier <= 1 for earlier, later in pairwise(levels)), place
        assert page.run("[...document.querySelectorAll('th')].every(e => e.scope)")
        # text of every link and button can be read: it has a size, and is not cut off
        assert page.run(
            "[...document.querySelectorAll('a:not(.skip),button,h1,h2,h3')]"
            ".every(e => e.getBoundingClientRect().right <= innerWidth + 1)"
        ), place
    hosts = {re.sub(r"^(\w+://[^/]+).*", r"\1", address) for address in page.requests}
    assert hosts - {"data:,"} <= {watched.running.url, "about:blank"}
    assert page.problems == []
    page.open(watched.url)
    assert page.run("document.querySelectorAll('.chart polyline').length") >= 2
    # a curve goes up in steps: no stretch of it is oblique
    assert page.run(
        "[...document.querySelectorAll('.chart polyline')].every(line => [...line.points].every("
        "(p, i, all) => !i || p.x === all[i - 1].x || p.y === all[i - 1].y))"
    )


def test_the_cookie_is_for_these_pages_alone_and_ends_with_the_session(
    page: Page, watched: Watched
) -> None:
    sign_in(page, watched)
    (cookie,) = page.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (
        True,
        "Strict",
        "/dashboard",
    )
    assert watched.running.owner not in cookie["value"]
    assert page.run("document.cookie") == ""
    page.run("document.querySelector('form[action$=sign-out] button').click()")
    page.wait()
    assert page.cookies() == []
    page.open(f"{watched.url}/keys")
    assert page.run("location.pathname") == "/dashboard/sign-in"
