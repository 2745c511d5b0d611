"""Prepaid answers: what is charged, when, and who may still take any."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reticent.accounting.events import PrivacyEvent
from reticent.core import AddRemove, Guarantee, Receipt, Scope, Unit
from reticent.core.errors import BudgetExceeded, InvalidInput, LedgerUnavailable
from reticent.ledger import Ledger
from reticent.ledger.counters import PlanCounter
from reticent.noise import SecureSampler
from reticent.release import Drawn, Prepaid, Price, paid
from tests.together import in_forks, in_threads

ADJACENCY = AddRemove(1, Unit.RECORD, "ward 7")
SCOPE = Scope(subject="ward 7")
EVENT = PrivacyEvent("votes", Guarantee(1.0, 0.0, ADJACENCY))
SMALL = Guarantee(0.1, 0.0, ADJACENCY)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(Ledger.create(tmp_path / "ledger.db")) as opened:
        opened.grant(SCOPE, Guarantee(1.5, 0.0, ADJACENCY))
        yield opened


def spent(ledger: Ledger) -> float:
    return sum(account.spent_epsilon for account in ledger.report().accounts) / 1e6


def take(answers: Prepaid, rows: int, **books: Any) -> Receipt:
    price = Price(EVENT, rows, "votes", prepaid=answers)
    with paid(price, sampler=SecureSampler(), **{"ledger": None, "scope": None, **books}) as one:
        return one.receipt


def test_all_answers_are_charged_once_with_the_first(ledger: Ledger) -> None:
    answers = Prepaid(EVENT, queries=5)
    for _ in range(2):
        take(answers, 2, ledger=ledger, scope=SCOPE)
        assert spent(ledger) == pytest.approx(1.0)
        assert answers.entry
    assert answers.remaining == 1
    with pytest.raises(BudgetExceeded):
        take(answers, 2, ledger=ledger, scope=SCOPE)
    with pytest.raises(BudgetExceeded):
        take(Prepaid(EVENT, queries=5), 1, ledger=ledger, scope=SCOPE)


def test_each_receipt_of_a_plan_is_confirmed_by_its_one_entry(ledger: Ledger) -> None:
    answers = Prepaid(EVENT, queries=5)
    receipts = [take(answers, rows, ledger=ledger, scope=SCOPE) for rows in (2, 1, 2)]
    assert ledger.verify(receipts=receipts).problems == ()
    with ledger.reserve(SCOPE, PrivacyEvent("other", SMALL), answers=2) as other:
        other.commit("another")
    booked: Any = {"booked": other.id, "position": other.position, "digest": other.digest}
    moved = replace(receipts[0], **booked)
    (problem,) = ledger.verify(receipts=[moved]).problems
    assert moved.identifier in problem


def test_more_than_there_are_is_refused_before_the_charge(ledger: Ledger) -> None:
    answers = Prepaid(EVENT, queries=5)
    with pytest.raises(BudgetExceeded):
        take(answers, 6, ledger=ledger, scope=SCOPE)
    assert spent(ledger) == 0
    assert answers.entry is None


def test_whether_a_ledger_counts_is_settled_by_the_first_answer(
    ledger: Ledger, tmp_path: Path
) -> None:
    answers = Prepaid(EVENT, queries=5)
    with pytest.raises(InvalidInput, match="both or neither"):
        take(answers, 1, ledger=ledger, scope=None)
    take(answers, 1)
    with pytest.raises(InvalidInput, match="first release"):
        take(answers, 1, ledger=ledger, scope=SCOPE)
    assert spent(ledger) == 0
    booked = Prepaid(EVENT, queries=5)
    take(booked, 1, ledger=ledger, scope=SCOPE)
    with pytest.raises(InvalidInput, match="same ledger again"):
        take(booked, 1)
    with closing(Ledger.create(tmp_path / "other.db")) as other:
        other.grant(SCOPE, Guarantee(1.5, 0.0, ADJACENCY))
        with pytest.raises(InvalidInput, match="another one"):
            take(booked, 1, ledger=other, scope=SCOPE)
        assert spent(other) == 0


def test_a_copy_has_what_the_ledger_says_and_nothing_without_one(ledger: Ledger) -> None:
    answers = Prepaid(EVENT, queries=5)
    before = pickle.loads(pickle.dumps(answers))
    take(answers, 2, ledger=ledger, scope=SCOPE)
    after = pickle.loads(pickle.dumps(answers))
    assert (before.remaining, after.remaining) == (0, 0)
    with pytest.raises(BudgetExceeded):
        take(before, 1)
    with pytest.raises(BudgetExceeded):
        take(before, 1, ledger=ledger, scope=SCOPE)
    take(after, 3, ledger=ledger, scope=SCOPE)
    with pytest.raises(BudgetExceeded):
        take(answers, 1, ledger=ledger, scope=SCOPE)
    assert spent(ledger) == pytest.approx(1.0)


def released(answers: Prepaid, withheld: list[bool], **books: Any) -> list[int]:
    """The labels that are given out of rows whose label is their place; -1 where withheld."""
    places = np.arange(len(withheld))
    drawn = Drawn(np.where(withheld, -1, places), np.array(withheld))
    price = Price(EVENT, len(withheld), "votes", prepaid=answers)
    with paid(price, sampler=SecureSampler(), **{"ledger": None, "scope": None, **books}) as one:
        kept = one.kept(drawn)
    assert ((kept.values == -1) == kept.withheld).all()
    return [int(value) for value in kept.values]


def test_queries_run_out_and_a_refusal_counts_nothing() -> None:
    answers = Prepaid(EVENT, queries=20)
    take(answers, 12)
    with pytest.raises(BudgetExceeded):
        take(answers, 9)
    assert (answers.asked, answers.answered, answers.remaining) == (12, 12, 8)
    take(answers, 8)
    assert answers.remaining == 0


@pytest.mark.parametrize("booked", [False, True])
def test_no_answer_is_given_out_beyond_the_cap(booked: bool, ledger: Ledger) -> None:
    books = {"ledger": ledger, "scope": SCOPE} if booked else {}
    answers = Prepaid(EVENT, queries=10, answers=3)
    assert released(answers, [True, False, True], **books) == [-1, 1, -1]
    assert (answers.asked, answers.answered, answers.remaining) == (3, 1, 7)
    assert released(answers, [False, True, False, False, False], **books) == [0, -1, 2, -1, -1]
    assert (answers.asked, answers.answered, answers.remaining) == (8, 3, 0)
    with pytest.raises(BudgetExceeded):
        take(answers, 1, **books)


class Meeting(Prepaid):
    """Two threads meet between finding room and taking it, if they can."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.barrier = threading.Barrier(2)

    def _check(self, queries: int) -> None:
        super()._check(queries)
        with suppress(threading.BrokenBarrierError):
            self.barrier.wait(timeout=0.5)


def together(*calls: Any) -> list[str]:
    """What came of calls in threads of their own: the names of their errors, or ""."""

    def call(one: Any) -> str:
        try:
            one()
        except (BudgetExceeded, InvalidInput, LedgerUnavailable) as error:
            return type(error).__name__
        return ""

    return sorted(in_threads(*(partial(call, one) for one in calls)))


def test_two_threads_do_not_share_what_is_left() -> None:
    answers = Meeting(EVENT, queries=20)
    found = together(*[lambda: take(answers, 15)] * 2)
    assert (found, answers.asked) == (["", "BudgetExceeded"], 15)


def test_a_plan_is_counted_in_memory_or_in_a_ledger_and_never_in_both(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread without a ledger waits while another pays."""
    answers = Prepaid(EVENT, queries=20)
    pay, paying = answers._pay, threading.Event()

    def slowly(*given: Any) -> None:
        paying.set()
        unbooked.join(timeout=0.5)
        pay(*given)

    def afterwards() -> None:
        paying.wait(timeout=60)
        outcome.extend(together(lambda: take(answers, 20)))

    outcome: list[str] = []
    unbooked = threading.Thread(target=afterwards)
    monkeypatch.setattr(answers, "_pay", slowly)
    unbooked.start()
    take(answers, 20, ledger=ledger, scope=SCOPE)
    unbooked.join()
    assert outcome == ["InvalidInput"]


def fail(*_: object, **__: object) -> None:
    raise LedgerUnavailable("the disk is full")


def test_what_was_charged_and_not_counted_is_taken_up_where_it_was_charged(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = Prepaid(EVENT, queries=5)
    with monkeypatch.context() as broken:
        broken.setattr(PlanCounter, "open", fail)
        with pytest.raises(LedgerUnavailable):
            take(answers, 2, ledger=ledger, scope=SCOPE)
    assert answers.used
    with pytest.raises(InvalidInput):
        take(answers, 2)
    with closing(Ledger.create(tmp_path / "other.db")) as other:
        other.grant(SCOPE, Guarantee(1.5, 0.0, ADJACENCY))
        with pytest.raises(InvalidInput):
            take(answers, 2, ledger=other, scope=SCOPE)
    with pytest.raises(InvalidInput):
        take(answers, 2, ledger=ledger, scope=Scope(subject="ward 8"))
    take(answers, 5, ledger=ledger, scope=SCOPE)
    assert answers.remaining == 0
    assert spent(ledger) == pytest.approx(1.0)


@pytest.mark.parametrize("queries", [5, None])
def test_another_scope_of_the_ledger_that_paid_gives_none(
    queries: int | None, ledger: Ledger
) -> None:
    elsewhere = Scope(subject="ward 8")
    ledger.grant(elsewhere, Guarantee(1.5, 0.0, ADJACENCY))
    answers = Prepaid(EVENT, queries=queries)
    take(answers, 2, ledger=ledger, scope=SCOPE)
    with pytest.raises(InvalidInput):
        take(answers, 2, ledger=ledger, scope=elsewhere)
    assert {account.scope for account in ledger.report().accounts} == {SCOPE}


def test_a_child_that_is_forked_between_charge_and_receipt_leaves_its_parent_the_receipt(
    ledger: Ledger,
) -> None:
    """The child answers from the common count. Only the parent books the first receipt."""
    answers, books = Prepaid(EVENT, queries=5), {"ledger": ledger, "scope": SCOPE}
    price = Price(EVENT, 2, "votes", prepaid=answers)
    with paid(price, sampler=SecureSampler(), ledger=ledger, scope=SCOPE):
        assert in_forks(lambda: together(lambda: take(answers, 1, **books))) == [[""]]
    take(answers, 2, **books)
    assert (answers.remaining, ledger.verify().ok) == (0, True)
    assert spent(ledger) == pytest.approx(1.0)


def test_a_fork_of_a_plan_without_a_limit_has_none(ledger: Ledger) -> None:
    answers = Prepaid(EVENT, queries=None)
    take(answers, 100)
    assert in_forks(lambda: together(lambda: take(answers, 1))) == [["BudgetExceeded"]]
