"""The pages over HTTP: who may see them, what a browser may do with them, and forged forms."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from reticent.ledger import Ledger
from reticent.service.dashboard.routes import POLICY
from reticent.service.dashboard.sessions import COOKIE
from reticent.service.keys import KeyStore
from tests.service.dashboard.conftest import Watched

PAGES = ("", "/budgets", "/entries", "/keys", "/verification", "/bundles/records")


@contextmanager
def signed_in(watched: Watched, secret: str) -> Iterator[httpx.Client]:
    """A browser without pages."""
    with httpx.Client(base_url=watched.running.url, timeout=30) as client:
        reply = client.post("/dashboard/sign-in", data={"key": secret})
        assert reply.status_code == 303
        assert reply.headers["location"] == "/dashboard"
        yield client


def test_nothing_is_shown_before_somebody_signs_in(watched: Watched) -> None:
    for place in PAGES:
        for headers in ({}, {"Authorization": f"Bearer {watched.running.owner}"}):
            reply = httpx.get(watched.url + place, headers=headers)
            assert (reply.status_code, reply.text) == (303, ""), place
            assert reply.headers["location"] == "/dashboard/sign-in"


def test_every_page_says_what_a_browser_may_load(watched: Watched) -> None:
    with signed_in(watched, watched.running.owner) as client:
        for place in (*PAGES, "/sign-in", "/bundles/none"):
            reply = client.get(f"/dashboard{place}", follow_redirects=True)
            assert reply.headers["content-security-policy"] == POLICY
            assert reply.headers["cache-control"] == "no-store"
            assert reply.headers["x-content-type-options"] == "nosniff"
            assert reply.headers["referrer-policy"] == "no-referrer"
            assert reply.headers["x-frame-options"] == "DENY"
            assert "style=" not in reply.text
            assert "<script" not in reply.text
            assert watched.running.owner not in reply.text
    assert "script" not in POLICY
    assert "unsafe" not in POLICY
    style = httpx.get(f"{watched.url}/style.css")
    assert style.headers["content-type"].startswith("text/css")
    assert "url(" not in style.text
    assert "@import" not in style.text


@pytest.mark.parametrize("key", ["client", "nobody", ""])
def test_other_keys_open_nothing(watched: Watched, key: str) -> None:
    secret = {"client": watched.running.client, "nobody": "reticent_of-nobody"}.get(key, "")
    reply = httpx.post(f"{watched.url}/sign-in", data={"key": secret})
    assert reply.status_code in (401, 403)
    assert "set-cookie" not in reply.headers
    assert 'role="alert"' in reply.text
    assert not secret or secret not in reply.text


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://elsewhere.example"},
    ],
)
def test_forms_of_other_sites_are_refused(watched: Watched, headers: dict[str, str]) -> None:
    reply = httpx.post(
        f"{watched.url}/sign-in", data={"key": watched.running.owner}, headers=headers
    )
    assert reply.status_code == 422
    assert "set-cookie" not in reply.headers
    with signed_in(watched, watched.running.owner) as client:
        reply = client.post("/dashboard/sign-out", headers=headers)
        assert reply.status_code == 422
        assert client.get("/dashboard").status_code == 200


def test_forms_that_are_none_are_refused(watched: Watched) -> None:
    for content, kind in (
        (b"key=" + b"a" * 5000, "application/x-www-form-urlencoded"),
        (b"a=1&b=2&c=3&d=4&e=5", "application/x-www-form-urlencoded"),
        (b'{"key": "a"}', "application/json"),
        (b"\xff\xfe", "application/x-www-form-urlencoded"),
    ):
        reply = httpx.post(
            f"{watched.url}/sign-in", content=content, headers={"Content-Type": kind}
        )
        assert reply.status_code in (401, 422)


def test_a_page_changes_nothing(watched: Watched) -> None:
    ledger = Ledger.open(watched.running.ledger, anchor=watched.running.folder / "anchors")
    before = ledger.anchor()
    with signed_in(watched, watched.running.owner) as client:
        for place in PAGES:
            assert client.get(f"/dashboard{place}").status_code == 200
            assert client.post(f"/dashboard{place}").status_code == 405
        assert client.get("/dashboard/bundles/none").status_code == 404
        assert client.get("/dashboard/entries?before=0").status_code == 422
        assert client.get("/dashboard/budgets?subject=a%20%20b").status_code == 422
        assert client.get("/dashboard/budgets?subject=nobody").status_code == 200
        assert client.get("/dashboard/entries?receipt=none").text.count("<tbody>") == 0
    assert ledger.anchor() == before
    ledger.close()


def test_a_revoked_key_is_signed_out(watched: Watched) -> None:
    ledger = Ledger.open(watched.running.ledger, anchor=watched.running.folder / "anchors")
    keys = KeyStore(ledger)
    made, secret = keys.create("hospital", bundles=["*"], subjects=["*"], role="owner")
    with signed_in(watched, secret) as client:
        assert client.get("/dashboard").status_code == 200
        keys.revoke(made.id)
        assert client.get("/dashboard").status_code == 303
    ledger.close()


def test_a_cookie_asks_for_nothing(watched: Watched) -> None:
    with signed_in(watched, watched.running.owner) as client:
        assert client.cookies.get(COOKIE)
        for place in ("/v1/bundles", "/v1/budget", "/metrics"):
            assert client.get(place).status_code == 401
