"""Somebody with SQL and no library writes into the service's tables."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa

from reticent.core.errors import CorruptLedger, LedgerUnavailable, ReticentError
from reticent.core.releases import Release
from reticent.ledger import Ledger
from reticent.ledger.chain import Anchor
from reticent.service import answering
from reticent.service.core import Service
from reticent.service.drawing import Charged
from reticent.service.keys import PREFIX, ApiKey, digest_of
from reticent.service.retention import prune
from reticent.service.watch import Watch
from tests.machine import wait_until
from tests.service.conftest import RECORDS, Place
from tests.service.servers import start_is_refused
from tests.service.test_answering import COST, ask

SECRET = PREFIX + "planted" * 8


def change(ledger: Ledger, sql: str, **values: object) -> None:
    with ledger.store.write() as connection:
        assert connection.execute(sa.text(sql), values).rowcount > 0


def test_a_planted_key_charges_nobody(service: Service, any_place: Place) -> None:
    sql = (
        "INSERT INTO api_keys SELECT 'planted', :digest, principal, role, bundles, subjects, "
        "created, expires, revoked FROM api_keys WHERE principal = 'acme'"
    )
    change(service.ledger, sql, digest=digest_of(SECRET))
    with pytest.raises(ReticentError):
        ask(service, service.keys.find(SECRET))
    planted = ApiKey("planted", "acme", "client", ("*",), (RECORDS,), 0.0, None, None)
    with pytest.raises(CorruptLedger):
        ask(service, planted)
    assert any_place.spent(RECORDS) == 0
    assert any("api_keys" in problem for problem in service.ledger.verify().problems)
    assert ask(service, service.keys.find(any_place.secret))  # others are served as before


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE api_keys SET subjects = '[\"*\"]' WHERE principal = 'bolt'",
        "UPDATE api_keys SET principal = 'acme' WHERE principal = 'bolt'",
        "UPDATE api_keys SET revoked = NULL WHERE principal = 'bolt'",
    ],
)
def test_a_key_that_was_given_more_is_refused(service: Service, any_place: Place, sql: str) -> None:
    bolt = service.keys.find(any_place.other)
    service.keys.revoke(bolt.id)
    change(service.ledger, sql)
    with pytest.raises(CorruptLedger):
        service.keys.find(any_place.other)
    (done,) = service.ledger.post_together([lambda page: service.keys.check(page, bolt)])
    assert isinstance(done, CorruptLedger)
    with pytest.raises(CorruptLedger):
        service.keys.list()


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE service_answers SET body = replace(CAST(body AS TEXT), 'yes', 'no!')",
        "UPDATE service_answers SET request = 'x'",
        "UPDATE service_answers SET state = 'lost', receipt = NULL, body = NULL",
        "UPDATE service_answers SET idempotency_key = 'another-1'",
        "DELETE FROM service_answers",
    ],
)
def test_no_changed_answer_is_sent_and_none_drawn_twice(
    place: Place, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service(place.settings())
    key = service.keys.find(place.secret)
    ask(service, key)

    def drawn(*_: object) -> None:
        pytest.fail("drawn again")

    monkeypatch.setattr(service.answering, "_drawn", drawn)
    change(service.ledger, sql)
    with pytest.raises(CorruptLedger):
        ask(service, key)
    if "body =" in sql and "state" not in sql:
        with pytest.raises(CorruptLedger):  # nor is the change covered up by removing the body
            prune(service.ledger, older_than=3600.0, clock=lambda: 2.0**40)
    assert place.spent(RECORDS) == COST
    assert not service.ledger.verify().ok
    service.close()


@pytest.mark.parametrize(
    "sql", ["UPDATE service_answers SET due = due + 1", "DELETE FROM service_answers"]
)
def test_a_row_that_was_changed_since_its_charge_is_not_filled(
    service: Service, any_place: Place, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = answering.drawn

    def meanwhile(charged: Sequence[Charged]) -> list[Release]:
        change(service.ledger, sql)
        return drawn(charged)

    monkeypatch.setattr(answering, "drawn", meanwhile)
    with pytest.raises(CorruptLedger):
        ask(service, service.keys.find(any_place.secret))
    assert any_place.spent(RECORDS) == COST


def test_a_revocation_cannot_be_taken_back_with_an_old_copy(place: Place, tmp_path: Path) -> None:
    path, copy = Path(str(sa.make_url(place.ledger).database)), tmp_path / "copy"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM INTO ?", (str(copy),))
    service = Service(place.settings())
    service.keys.revoke(service.keys.find(place.secret).id)
    service.close()
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    copy.replace(path)
    with pytest.raises(ReticentError, match="older than its anchor"):
        Service(place.settings())


def test_no_position_is_signed_of_a_ledger_that_went_back(service: Service) -> None:
    file = service.ledger.anchor_file()
    standing = file.read()
    assert standing is not None
    file.raise_to(Anchor(standing.ledger, standing.seq + 1, "0" * 64, 0, 0))
    with pytest.raises(LedgerUnavailable, match="is older than its anchor"):
        service.anchored()


def test_a_corrupt_ledger_is_not_served(place: Place, tmp_path: Path) -> None:
    service = Service(place.settings())
    ask(service, service.keys.find(place.secret))
    change(service.ledger, "UPDATE service_answers SET body = 'x'")
    service.close()
    assert "CorruptLedger" in start_is_refused(place.settings(), tmp_path / "log")


def test_a_served_ledger_is_verified_every_hour(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reticent.service.core.Watch", partial(Watch, every=0.1))
    service = Service(place.settings())
    key = service.keys.find(place.secret)
    ask(service, key)
    change(service.ledger, "UPDATE service_answers SET body = 'x'")  # which no other request reads
    wait_until(lambda: service.watch.found)
    with pytest.raises(CorruptLedger):
        ask(service, key, "request-2")
    with pytest.raises(CorruptLedger):
        asyncio.run(service.check_chargeable())
    assert place.spent(RECORDS) == COST
    service.close()
