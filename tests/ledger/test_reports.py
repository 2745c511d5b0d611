from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from reticent.accounting import PrivacyEvent
from reticent.core import AddRemove, Guarantee, Scope
from reticent.ledger import Ledger

EventMaker = Callable[..., PrivacyEvent]


@pytest.fixture
def filled(ledger: Ledger, make_event: EventMaker) -> Ledger:
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


EventMaker = Callable[..., PrivacyEvent]
