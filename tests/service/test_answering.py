"""One charge, one draw: what a request finds, whatever happened between charge and answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
import sqlalchemy as sa

from reticent.core.errors import (
    AnswerLost,
    InvalidInput,
    LedgerUnavailable,
    NotAuthenticated,
    RequestUnderWay,
)
from reticent.service.answering import Asked
from reticent.service.core import Service
from reticent.service.keys import ApiKey, KeyStore
from tests.service.conftest import RECORDS, Place

BODY = json.dumps({"rows": [[0.3, 0.2], [-0.3, -0.2]]}).encode()
COST = 1_000_000


def ask(service: Service, key: ApiKey, name: str = "request-1", body: bytes = BODY) -> bytes:
    bundle = service.catalogue.find("labels", may_ask=key.may_ask)
    asked = service.asked(key, bundle, name, body)
    assert isinstance(asked, Asked)
    with service.answering.turn:
        (answer,) = service.answering.answer([asked])
    if isinstance(answer, Exception):
        raise answer
    assert answer.rows == len(json.loads(body)["rows"])
    return answer.body


def test_a_key_that_was_revoked_after_it_was_looked_up_charges_nothing(
    service: Service, key: ApiKey, any_place: Place
) -> None:
    first = ask(service, key)
    KeyStore(service.ledger).revoke(key.id)
    with pytest.raises(NotAuthenticated):
        ask(service, key, "request-2")
    with pytest.raises(NotAuthenticated):
        ask(service, key)  # nor does it get what was stored
    assert first
    assert any_place.spent(RECORDS) == COST


def test_an_answer_whose_request_was_given_up_is_not_sent(
    service: Service, key: ApiKey, any_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another host, whose clock is ahead, gives the request up while it is being answered."""
    answering = service.answering
    sign = service.signer.receipt

    def meanwhile(receipt: Any) -> Any:
        now = answering._clock()
        monkeypatch.setattr(answering, "_clock", lambda: now + 31)
        answering.turn.release()
        with pytest.raises(AnswerLost):
            ask(service, key)
        answering.turn.acquire()
        return sign(receipt)

    monkeypatch.setattr(service.signer, "receipt", meanwhile)
    with pytest.raises(AnswerLost):
        ask(service, key)
    monkeypatch.undo()
    with pytest.raises(AnswerLost):
        ask(service, key)
    assert any_place.spent(RECORDS) == COST
    with service.ledger.store.read() as connection:
        commits = connection.execute(
            sa.text("SELECT count(*) FROM entries WHERE action = 'commit'")
        ).scalar_one()
    assert commits == 0  # no receipt of an answer that nobody has


def test_a_repeat_while_it_is_being_answered_is_told_so(
    service: Service, key: ApiKey, any_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering, sign = service.answering, service.signer.receipt

    def meanwhile(receipt: Any) -> Any:
        answering.turn.release()
        with pytest.raises(RequestUnderWay):
            ask(service, key)
        with pytest.raises(InvalidInput, match="another request"):
            ask(service, key, body=json.dumps({"rows": [[0.0, 0.0]]}).encode())
        answering.turn.acquire()
        return sign(receipt)

    monkeypatch.setattr(service.signer, "receipt", meanwhile)
    body = ask(service, key)
    assert ask(service, key) == body
    assert any_place.spent(RECORDS) == COST


def test_an_answer_is_stored_though_the_ledger_was_away_for_a_moment(
    service: Service, key: ApiKey, any_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited, calls = service.answering.waited, []

    def away(works: Any, **how: Any) -> Any:
        calls.append(works)
        if len(calls) in (2, 3):  # the charge is the first
            raise LedgerUnavailable("away")
        return waited(works, **how)

    monkeypatch.setattr(service.answering, "waited", away)
    body = ask(service, key)
    assert len(calls) == 4
    monkeypatch.undo()
    assert ask(service, key) == body

    def gone(works: Any, **how: Any) -> Any:
        calls.append(works)
        if len(calls) > 5:
            raise LedgerUnavailable("gone")
        return waited(works, **how)

    monkeypatch.setattr(service.answering, "waited", gone)
    with pytest.raises(LedgerUnavailable):
        ask(service, key, "request-2")
    monkeypatch.undo()
    with pytest.raises(RequestUnderWay):  # until its lease is over
        ask(service, key, "request-2")
    assert any_place.spent(RECORDS) == 2 * COST


def test_an_answer_whose_commit_was_not_heard_of_is_stored_and_sent(
    service: Service, key: ApiKey, any_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection breaks, or the anchor cannot be raised, after the transaction took place."""
    waited, calls = service.answering.waited, []

    def unheard(works: Any, **how: Any) -> Any:
        calls.append(works)
        done = waited(works, **how)
        if len(calls) == 2:  # the charge is the first
            raise LedgerUnavailable("unheard")
        return done

    monkeypatch.setattr(service.answering, "waited", unheard)
    body = ask(service, key)
    assert len(calls) == 3
    monkeypatch.undo()
    assert ask(service, key) == body
    assert any_place.spent(RECORDS) == COST
    with service.ledger.store.read() as connection:
        commits = connection.execute(
            sa.text("SELECT count(*) FROM entries WHERE action = 'commit'")
        ).scalar_one()
    assert commits == 1


def test_a_fault_after_the_charge_leaves_it_spent(
    service: Service, key: ApiKey, any_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(receipt: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(service.signer, "receipt", broken)
    with pytest.raises(ZeroDivisionError):
        ask(service, key)
    monkeypatch.undo()
    later = service.answering._clock() + 31
    monkeypatch.setattr(service.answering, "_clock", lambda: later)
    for _ in range(2):
        with pytest.raises(AnswerLost):
            ask(service, key)
    assert any_place.spent(RECORDS) == COST
