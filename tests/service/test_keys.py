from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from reticent.core.errors import InvalidInput, NotAuthenticated, NotPermitted, UnknownName
from reticent.ledger import Ledger
from reticent.ledger.chain import Page, read_tip
from reticent.service.keys import ApiKey, KeyStore, checked_subject, digest_of


@pytest.fixture
def ledger(ledger_url: str, tmp_path: Path) -> Iterator[Ledger]:
    made = Ledger.create(ledger_url, synchronous="NORMAL", anchor=tmp_path / "anchors")
    yield made
    made.close()


def test_a_key_is_found_until_it_expires_or_is_revoked(ledger: Ledger) -> None:
    now = [1000.0]
    keys = KeyStore(ledger, clock=lambda: now[0])
    made, secret = keys.create("acme", bundles=["*"], subjects=["ward-7"], lasts=60)
    assert keys.find(secret) == made
    now[0] += 59.9
    assert keys.find(secret).state(now[0]) == "valid"
    now[0] += 0.1
    with pytest.raises(NotAuthenticated):
        keys.find(secret)
    assert keys.list()[0].state(now[0]) == "expired"
    again, other = keys.create("acme", bundles=["*"], subjects=["ward-7"])
    assert keys.find(other) == again
    now[0] += 1
    first = keys.revoke(again.id)
    now[0] += 1
    assert keys.revoke(again.id).revoked == first.revoked  # once is for good
    with pytest.raises(NotAuthenticated):
        keys.find(other)
    with ledger.store.read() as connection, pytest.raises(NotAuthenticated):
        keys.check(Page.of(connection, read_tip(connection)), again)
    with pytest.raises(UnknownName):
        keys.revoke("0" * 16)


def test_a_key_that_expires_after_a_charge_pays_for_no_other(ledger: Ledger) -> None:
    now = [1000.0]
    keys = KeyStore(ledger, clock=lambda: now[0])
    made, _ = keys.create("acme", bundles=["*"], subjects=["ward-7"], lasts=60)
    with ledger.store.read() as connection:
        page = Page.of(connection, read_tip(connection))
        keys.check(page, made)
        keys.check(page, made)
        now[0] += 60
        with pytest.raises(NotAuthenticated):
            keys.check(page, made)


def test_what_a_key_was_granted() -> None:
    key = ApiKey("0" * 16, "acme", "client", ("labels",), ("ward-7/*", "bed"), 0.0, None, None)
    assert key.may_ask("other", "labels")
    assert not key.may_ask("labels2")
    assert key.may_charge("ward-7/")
    assert key.may_charge("bed")
    assert not key.may_charge("ward-7")
    assert not key.may_charge("bedside")
    key.check_subjects(["bed", "ward-7/1"])
    with pytest.raises(NotPermitted, match="1 of the subjects") as caught:
        key.check_subjects(["bed", "ward-8", "ward-8"])
    assert "ward-8" not in str(caught.value)


def test_subjects_are_composed_and_never_confusable() -> None:
    assert checked_subject("Zoe\u0308") == "Zo\u00eb"
    for wrong in ("a\u200bb", "p\u0430ypal", "a\u00adb", "\uff41"):
        with pytest.raises(InvalidInput):
            checked_subject(wrong)


def test_only_a_digest_of_a_key_is_kept(ledger: Ledger) -> None:
    keys = KeyStore(ledger)
    secrets = {keys.create("acme", bundles=["*"], subjects=["*"])[1] for _ in range(20)}
    assert len(secrets) == 20
    with ledger.store.read() as connection:
        rows = list(connection.execute(sa.text("SELECT * FROM api_keys")))
    stored = {bytes(row.digest) for row in rows}
    assert stored == {digest_of(secret) for secret in secrets}
    for secret in secrets:
        assert len(secret.removeprefix("reticent_")) == 43  # 256 bits
        assert not any(secret[9:] in str(row) for row in rows)
