"""What a request must name, what is left of a budget that is lowered, what a report says first."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reticent.accounting import PrivacyEvent
from reticent.core import AddRemove, Guarantee, Policy, Scope
from reticent.core.errors import (
    BudgetExceeded,
    CorruptLedger,
    InvalidInput,
    InvalidParameter,
    UnknownName,
)
from reticent.ledger import Budget, Ledger
from tests.events import make_event


def test_a_request_that_leaves_its_subject_out_is_refused(ledger_url: str) -> None:
    """A budget for the client is there too, which would pay for it and leave the person's budget
    untouched.
    """
    book = Ledger.create(ledger_url, synchronous="NORMAL")
    book.grant(Scope(principal="acme"), Guarantee(100.0, 0.0, AddRemove()))
    book.grant(Scope(subject="Zo\u00eb"), Guarantee(0.1, 0.0, AddRemove()))
    book.reserve(Scope("acme", "Zo\u00eb"), make_event(), answers=1).commit("receipt")
    before = book.report().anchor
    with pytest.raises(InvalidInput, match="expected a subject, which this ledger requires"):
        book.reserve(Scope("acme"), make_event(), answers=1)
    with pytest.raises(InvalidInput, match="expected a subject"):
        book.reserve_each([Scope("acme", "Zo\u00eb"), Scope("acme")], make_event())
    with pytest.raises(InvalidInput, match="expected a subject"):
        book.preview(Scope("acme"), make_event(), answers=1)
    for look_alike in (
        "Zoe",
        "\u0396\u03bf\u03b5",
        "zo\u00eb",
    ):  # legal names by themselves: no budget names them
        with pytest.raises(
            BudgetExceeded, match=f"no budget names subject={look_alike}, as this ledger requires"
        ):
            book.reserve(Scope("acme", look_alike), make_event(), answers=1)
        with pytest.raises(BudgetExceeded, match=f"no budget names subject={look_alike}"):
            book.reserve_each([Scope("acme", look_alike)], make_event())
        with pytest.raises(BudgetExceeded, match=f"no budget names subject={look_alike}"):
            book.preview(Scope("acme", look_alike), make_event(), answers=1)
    assert book.report().anchor == before
    assert book.policy == Policy(["subject"])
    assert book.set_policy(()) == book.policy == book.report().policy
    book.reserve(Scope("acme"), make_event(), answers=1)
    assert book.set_policy(["principal", "subject"]).text == "principal,subject"
    with pytest.raises(InvalidInput, match="expected a principal"):
        book.reserve(Scope(subject="Zo\u00eb"), make_event(), answers=1)
    assert book.verify().problems == ()
    book.close()


def test_a_policy_that_was_changed_by_hand_is_found(ledger_url: str) -> None:
    book = Ledger.create(ledger_url, synchronous="NORMAL")
    book.grant(Scope(subject="s"), Guarantee(1.0, 0.0, AddRemove()))
    for change, expected in (
        ("required = ''", "another policy, total or gap"),
        ("required = '', first_required = ''", "entry 1 does not match"),
    ):
        with book.store.write() as connection:
            connection.exec_driver_sql(f"UPDATE head SET {change}")
        assert any(expected in problem for problem in book.verify().problems)
        with pytest.raises(CorruptLedger):
            book.grant(Scope(subject="s"), Guarantee(1.0, 0.0, AddRemove()))
    book.close()


NEAR = AddRemove(1, data_set="ward")
COST = PrivacyEvent("test", Guarantee(1.0, 1e-6, NEAR))


def amounts(budget: Budget) -> tuple[float, float, float, float]:
    units = (budget.granted_epsilon, budget.spent_epsilon)
    deltas = (budget.granted_delta, budget.spent_delta)
    return (*(one / 1e6 for one in units), *(one / 1e6 for one in deltas))


@pytest.fixture
def granted(ledger: Ledger, scope: Scope) -> Ledger:
    """A budget of 10 and 1e-5, of which three answers are spent."""
    ledger.grant(scope, Guarantee(10.0, 1e-5, NEAR))
    ledger.reserve(scope, COST, answers=3)
    return ledger


def test_a_frozen_budget_pays_nothing_until_it_is_granted_more(
    granted: Ledger, scope: Scope
) -> None:
    assert amounts(granted.lower(scope)) == (3, 3, 3, 3)
    with pytest.raises(BudgetExceeded):
        granted.reserve(scope, COST, answers=1)
    assert granted.verify().ok
    granted.grant(scope, Guarantee(1.0, 1e-6, NEAR))
    granted.reserve(scope, COST, answers=1)
    with pytest.raises(BudgetExceeded):
        granted.reserve(scope, COST, answers=1)
    assert granted.verify().ok
    assert granted.report().entries == 5


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({"epsilon": 2.0}, (8, 3, 10, 3)),
        ({"delta": 2e-6}, (10, 3, 8, 3)),
        ({"epsilon": 2.0, "delta": 2e-6}, (8, 3, 8, 3)),
        ({"epsilon": 1e6, "delta": 0.5}, (3, 3, 3, 3)),
        ({"epsilon": 1e-9}, (9.999999, 3, 10, 3)),
    ],
)
def test_a_part_is_taken_and_never_what_was_spent(
    granted: Ledger, scope: Scope, given: dict[str, float], left: tuple[float, ...]
) -> None:
    assert amounts(granted.lower(scope, **given)) == left
    assert amounts(granted.report().budgets[0]) == left
    assert granted.verify().ok


def test_what_cannot_be_taken_writes_nothing(granted: Ledger, scope: Scope) -> None:
    with pytest.raises(UnknownName):
        granted.lower(Scope(subject="nobody"))
    for wrong in ({"epsilon": -1.0}, {"delta": 1.0}, {"epsilon": float("nan")}):
        with pytest.raises(InvalidParameter):
            granted.lower(scope, **wrong)
    assert granted.report().entries == 2


@pytest.fixture
def filled(ledger: Ledger) -> Ledger:
    """Two budgets, three accounts; one hour between reservations."""
    hours: Iterator[int] = iter(range(100))
    timed = Ledger(ledger.store, clock=lambda: 1_700_000_000_000_000 + 3_600_000_000 * next(hours))
    timed.grant(Scope(subject="s"), Guarantee(2.0, 1e-6, AddRemove()))
    timed.grant(Scope(subject="t"), Guarantee(1.0, 1e-6, AddRemove()))
    for principal, subject, answers in (("p", "s", 2), ("q", "s", 3), ("p", "t", 9), ("p", "s", 4)):
        timed.reserve(Scope(principal, subject), make_event(), answers=answers)
    return timed


def test_report_names_the_tightest_budget_and_the_largest_spender_first(filled: Ledger) -> None:
    report = filled.report()
    assert [(b.scope.subject, b.left_epsilon) for b in report.budgets] == [
        ("t", 100_000),
        ("s", 1_100_000),
    ]
    assert [(a.scope.principal, a.scope.subject, a.spent_epsilon) for a in report.accounts] == [
        ("p", "t", 900_000),
        ("p", "s", 600_000),
        ("q", "s", 300_000),
    ]
    assert (report.entries, report.accounts_total) == (6, 3)
