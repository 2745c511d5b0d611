"""The pages in a real browser: on a desk, on a phone, by keyboard alone, and without scripts."""

from __future__ import annotations

import pytest

from tests.browser import Page
from tests.service.dashboard.conftest import Watched

pytestmark = pytest.mark.browser


def sign_in(page: Page, watched: Watched) -> None:
    """By keyboard: the field has the focus already."""
    page.open(watched.url)
    assert page.focus().startswith("INPUT key")
    page.write(watched.running.owner)
    page.press("Enter")
    page.wait()


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
