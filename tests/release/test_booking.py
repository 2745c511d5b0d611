"""Charging before answering: one scope for all rows, or one for each row."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from reticent.accounting import PrivacyEvent
from reticent.core import Guarantee, Replace, Scope
from reticent.core.errors import BudgetExceeded, InvalidInput, LedgerUnavailable
from reticent.ledger import Ledger
from reticent.noise import SecureSampler, SeededSampler
from reticent.systems import CertifiedClassifier, ClippedDescent
from tests.release.asking import asked

ONE = Guarantee(0.5, 0.0, Replace(1))
ROWS = np.arange(8.0).reshape(4, 2)
PEOPLE = [Scope("clinic", name) for name in ("ana", "ben", "ana", "cy")]


class Echo:
    """A query that returns its inputs and remembers how often it was asked, and what the ledger
    said then.
    """

    mechanism = SimpleNamespace(name="echo", guarantee=ONE, event=PrivacyEvent("echo", ONE))
    certificate = "none"

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.seen: list[int] = []

    def answer(
        self, inputs: np.ndarray[Any, Any], *, sampler: object
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        self.seen.append(sum(account.spent_epsilon for account in self.ledger.report().accounts))
        return inputs, np.zeros(len(inputs), dtype=bool)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger.create(tmp_path / "ledger.db", synchronous="NORMAL")
    made.grant_each(
        [Scope(subject=name) for name in ("ana", "ben", "cy")], Guarantee(2.0, 0.0, Replace(1))
    )
    return made


def ask(query: Any, scope: Any, *, ledger: Ledger | None = None, sampler: Any = None) -> Any:
    book = query.ledger if ledger is None else ledger
    return asked(query, ROWS, sampler=sampler or SecureSampler(), ledger=book, scope=scope)


def spent(ledger: Ledger) -> dict[str, tuple[int, int, int]]:
    return {
        a.scope.subject: (a.spent_epsilon, a.answers, a.commits) for a in ledger.report().accounts
    }


@pytest.mark.parametrize("as_given", [list, tuple, lambda scopes: np.array(scopes, dtype=object)])
def test_every_row_is_charged_to_its_own_scope_before_it_is_answered(
    ledger: Ledger, as_given: Any
) -> None:
    query = Echo(ledger)
    release = ask(query, as_given(PEOPLE))
    assert query.seen == [2_000_000]
    assert release.values.tolist() == ROWS.tolist()
    assert spent(ledger) == {
        "ana": (1_000_000, 2, 1),
        "ben": (500_000, 1, 1),
        "cy": (500_000, 1, 1),
    }
    assert release.receipt.booked == f"{ledger.report().ledger[:8]}/4-6"
    with ledger.store.read() as connection:
        receipts = (
            connection.exec_driver_sql("SELECT receipt FROM entries WHERE action = 'commit'")
            .scalars()
            .all()
        )
    assert receipts == [release.receipt.identifier] * 3
    assert ledger.verify().ok


def test_one_person_without_budget_stops_every_row(ledger: Ledger) -> None:
    query = Echo(ledger)
    ledger.reserve(
        Scope("lab", "ana"), query.mechanism.event, answers=3
    )  # room for one more; two are asked for
    before = spent(ledger)
    for scopes in (PEOPLE, [Scope("clinic", "dee"), *PEOPLE[1:]]):
        with pytest.raises(BudgetExceeded, match="1 of the scopes lack budget"):
            ask(query, scopes)
        assert (spent(ledger), query.seen) == (before, [])


@pytest.mark.parametrize(
    ("scope", "message"),
    [
        (PEOPLE[:3], "one for each of the 4 rows, got 3 of them"),
        ([*PEOPLE, PEOPLE[0]], "got 5 of them"),
        ([], "got 0 of them"),
        ("anab", "got str"),
        (7, "got int"),
        (["ana", "ben", "ana", "cy"], "expected a Scope, got str"),
    ],
)
def test_other_scopes_than_rows_cost_nothing(ledger: Ledger, scope: Any, message: str) -> None:
    query = Echo(ledger)
    with pytest.raises(InvalidInput, match=message):
        ask(query, scope)
    assert (spent(ledger), query.seen) == ({}, [])


def test_a_ledger_and_scopes_come_together_and_without_a_seed(ledger: Ledger) -> None:
    query = Echo(ledger)
    with pytest.raises(InvalidInput, match="expected both or neither"):
        asked(query, ROWS, ledger=None, scope=PEOPLE)
    with pytest.raises(InvalidInput, match="seeded answers are not private"):
        ask(query, PEOPLE, sampler=SeededSampler(0))
    assert (spent(ledger), query.seen) == ({}, [])


def test_an_answer_that_fails_leaves_every_charge(ledger: Ledger) -> None:
    query = Echo(ledger)
    query.answer = lambda inputs, sampler: 1 / 0  # type: ignore[method-assign]
    with pytest.raises(ZeroDivisionError):
        ask(query, PEOPLE)
    assert spent(ledger) == {
        "ana": (1_000_000, 2, 0),
        "ben": (500_000, 1, 0),
        "cy": (500_000, 1, 0),
    }
    assert ledger.verify().ok


def test_an_answer_whose_receipt_cannot_be_booked_does_not_leave(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise LedgerUnavailable("no space is left")

    monkeypatch.setattr("reticent.ledger.ledger.post_commits", full)
    with pytest.raises(LedgerUnavailable):
        ask(Echo(ledger), PEOPLE)
    assert spent(ledger)["ana"] == (1_000_000, 2, 0)


def test_a_certified_answer_is_not_charged_to_its_row(ledger: Ledger) -> None:
    """It costs the records that the classifier was trained on, whoever asks about whatever row."""
    points = np.random.default_rng(0).uniform(size=(40, 2))
    classifier = CertifiedClassifier(
        epsilon=1.0, classes=[0, 1], k_max=2, data_set="ward", training=ClippedDescent(epochs=1)
    ).fit(points, np.arange(40) % 2)
    with pytest.raises(InvalidInput, match="expected one Scope, got list"):
        classifier.release(ROWS, ledger=ledger, scope=PEOPLE)
    assert spent(ledger) == {}
