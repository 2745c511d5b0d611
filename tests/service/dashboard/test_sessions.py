"""A cookie is good for as long as its key is, on every host, and cannot be made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reticent.core.errors import NotAuthenticated
from reticent.ledger import Ledger
from reticent.service.dashboard.sessions import LASTS, Sessions
from reticent.service.keys import KeyStore

SECRET = b"of a test"


class Clock:
    """A time that the test sets."""

    now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def keys(tmp_path: Path) -> Iterator[tuple[KeyStore, Clock]]:
    clock = Clock()
    ledger = Ledger.create(tmp_path / "ledger.sqlite", anchor=tmp_path / "anchors")
    yield KeyStore(ledger, clock=clock), clock
    ledger.close()


def test_a_session_lasts_for_hours_and_holds_no_key(keys: tuple[KeyStore, Clock]) -> None:
    store, clock = keys
    made, secret = store.create("hospital", bundles=["*"], subjects=["*"], role="owner")
    key, cookie = Sessions(SECRET, store, clock=clock).begin(secret)
    assert key.id == made.id
    assert secret not in cookie
    elsewhere = Sessions(SECRET, store, clock=clock)  # another worker
    assert elsewhere.viewer(cookie) == key
    clock.now += LASTS - 1
    assert elsewhere.viewer(cookie) == key
    clock.now += 1
    assert elsewhere.viewer(cookie) is None


def test_a_revoked_or_expired_key_ends_its_sessions(keys: tuple[KeyStore, Clock]) -> None:
    store, clock = keys
    sessions = Sessions(SECRET, store, clock=clock)
    made, secret = store.create("hospital", bundles=["*"], subjects=["*"], role="owner")
    short, other = store.create("h", bundles=["*"], subjects=["*"], role="owner", lasts=60)
    cookies = [sessions.begin(secret)[1], sessions.begin(other)[1]]
    assert [sessions.viewer(cookie) is None for cookie in cookies] == [False, False]
    store.revoke(made.id)
    clock.now += 61
    assert [sessions.viewer(cookie) for cookie in cookies] == [None, None]
    with pytest.raises(NotAuthenticated):
        sessions.begin(secret)
    assert short.id != made.id


def test_a_cookie_cannot_be_made_or_changed(keys: tuple[KeyStore, Clock]) -> None:
    store, clock = keys
    sessions = Sessions(SECRET, store, clock=clock)
    owner, secret = store.create("hospital", bundles=["*"], subjects=["*"], role="owner")
    client, _ = store.create("acme", bundles=["*"], subjects=["ward 7"])
    _, cookie = sessions.begin(secret)
    identifier, until, mac = cookie.split(".")
    assert Sessions(b"another", store, clock=clock).viewer(cookie) is None
    for changed in (
        f"{identifier}.{int(until) + 1}.{mac}",
        f"{client.id}.{until}.{mac}",
        f"{identifier}.{until}.{'0' * 64}",
        f"{identifier}.{until}",
        cookie + "0",
        "",
        None,
        "é.1.2",
    ):
        assert sessions.viewer(changed) is None
    # even a good signature opens nothing for a client's key
    stated = f"{client.id}.{until}"
    assert sessions.viewer(f"{stated}.{sessions._mac(stated)}") is None
    stated = f"{owner.id}.{until}"
    assert sessions.viewer(f"{stated}.{sessions._mac(stated)}") == owner
