"""Answers may go; that they were given may not."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from reticent.core.errors import AnswerLost, InvalidInput, LedgerUnavailable
from reticent.ledger import Ledger
from reticent.service.core import Service
from reticent.service.keys import ApiKey
from reticent.service.retention import Removal, age_of, prune
from tests.service.conftest import RECORDS, Place
from tests.service.test_answering import COST, ask

DAY = 86_400.0


@pytest.fixture
def careless_sqlite() -> Iterator[None]:
    """SQLite as its authors build it: removed bytes stay until something else needs the place."""

    def leave(connection: Any, _: object) -> None:
        if isinstance(connection, sqlite3.Connection):
            connection.execute("PRAGMA secure_delete = OFF")

    sa.event.listen(sa.Engine, "connect", leave)
    yield
    sa.event.remove(sa.Engine, "connect", leave)


def later(days: float) -> Callable[[], float]:
    return lambda: time.time() + days * DAY


def rows(service: Service) -> list[tuple[str, bool]]:
    """State of every request, and whether its answer is there."""
    with service.ledger.store.read() as connection:
        query = "SELECT state, body IS NOT NULL FROM service_answers ORDER BY idempotency_key"
        return [(row[0], bool(row[1])) for row in connection.execute(sa.text(query))]


def test_a_removed_answer_is_refused_for_good_and_its_charge_stays(
    service: Service, key: ApiKey, any_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = service.ledger
    size = len(ask(service, key))
    identifier = sole_receipt(service)
    assert prune(ledger, older_than=30 * DAY, clock=later(29)) == Removal(0, 0)
    assert prune(ledger, older_than=30 * DAY, clock=later(31), dry_run=True) == Removal(1, size)
    assert ask(service, key)
    assert prune(ledger, older_than=30 * DAY, clock=later(31)) == Removal(1, size)
    assert rows(service) == [("removed", False)]

    def drawn_again(*_: object, **__: object) -> None:
        pytest.fail("drawn again")

    kind = type(service.catalogue.find("labels", may_ask=key.may_ask).system.query_)
    monkeypatch.setattr(kind, "answer", drawn_again)
    for _ in range(2):
        with pytest.raises(AnswerLost, match="removed since"):
            ask(service, key)
    with pytest.raises(InvalidInput, match="another request"):
        ask(service, key, body=b'{"rows": [[0.1, 0.2]]}')
    with pytest.raises(AnswerLost, match="removed since"):
        service.answering.receipt("acme", identifier)
    assert any_place.spent(RECORDS) == COST
    assert service.ledger.verify().ok
    assert prune(ledger, older_than=30 * DAY, clock=later(62)) == Removal(0, 0)


def test_many_answers_go_in_many_transactions_and_new_ones_stay(
    service: Service, key: ApiKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reticent.service.stored._AT_ONCE", 2)
    now = time.time()
    monkeypatch.setattr(service.answering, "_clock", lambda: now - 40 * DAY)
    for number in range(4):
        ask(service, key, f"request-{number}")
    monkeypatch.setattr(service.answering, "_clock", lambda: now)
    ask(service, key, "request-4")
    before = service.ledger.report().entries
    assert prune(service.ledger, older_than=30 * DAY).answers == 4
    assert service.ledger.report().entries == before + 2  # one for each transaction
    assert rows(service) == [("removed", False)] * 4 + [("answered", True)]


@pytest.mark.usefixtures("careless_sqlite")
def test_a_removed_answer_is_nowhere_in_the_file(place: Place) -> None:
    service = Service(place.settings())
    key = service.keys.find(place.secret)
    body = ask(service, key, body=json.dumps({"rows": [[0.3, 0.2]] * 900}).encode())
    assert service.ledger.store.is_sqlite
    path = service.ledger.store.location.path
    files = [path, path.with_name(path.name + "-wal")]
    planted = body[-60:]
    assert any(planted in file.read_bytes() for file in files if file.exists())
    prune(service.ledger, older_than=DAY, clock=later(2))
    assert not any(planted in file.read_bytes() for file in files if file.exists())
    service.close()


def test_a_log_that_others_still_read_is_told_and_emptied_when_asked_again(place: Place) -> None:
    service = Service(place.settings())
    key = service.keys.find(place.secret)
    body = ask(service, key)
    path = service.ledger.store.location.path
    log = path.with_name(path.name + "-wal")
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT body FROM service_answers").fetchall()
    ledger = Ledger.open(place.ledger, synchronous="NORMAL", lock_timeout=0.2)
    with pytest.raises(LedgerUnavailable, match="still holds what was removed"):
        prune(ledger, older_than=DAY, clock=later(2))
    assert rows(service) == [("removed", False)]
    assert body[-60:] in log.read_bytes()
    reader.close()
    assert prune(ledger, older_than=DAY, clock=later(2)) == Removal(0, 0)
    assert log.read_bytes() == b""
    ledger.close()
    service.close()


@pytest.mark.parametrize("text", ["30", "d", "-1d", "1.5d", "30 d", "\u0663d", ""])
def test_an_age_is_a_number_and_a_unit(text: str) -> None:
    with pytest.raises(InvalidInput, match="30d"):
        age_of(text)


def sole_receipt(service: Service) -> str:
    with service.ledger.store.read() as connection:
        found = connection.execute(sa.text("SELECT receipt FROM service_answers")).scalar_one()
    return str(found)
