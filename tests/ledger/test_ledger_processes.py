"""Many processes on one budget, and processes that are killed at any moment."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import Any

import pytest

from reticent.accounting import PrivacyEvent
from reticent.core import AddRemove, Guarantee, Scope
from reticent.core.errors import BudgetExceeded
from reticent.ledger import Ledger

EventMaker = Callable[..., PrivacyEvent]
FORK = multiprocessing.get_context("fork")  # a spawned process would spend seconds on imports


def _client(url: str, name: str, event: PrivacyEvent, requests: int, results: Any) -> None:
    ledger = Ledger.open(url, synchronous="NORMAL", lock_timeout=300.0)
    answered = refused = 0
    for number in range(requests):
        try:
            with ledger.reserve(Scope(name, "shared"), event, answers=1) as reservation:
                reservation.commit(f"{name}-{number}")
            answered += 1
        except BudgetExceeded:
            refused += 1
    results.put((name, answered, refused))


def _compete(
    ledger: Ledger, url: str, event: PrivacyEvent, *, processes: int, requests: int, fit: int
) -> dict[str, Any]:
    """What became of ``processes`` x ``requests`` requests on a budget for ``fit`` of them."""
    ledger.grant(
        Scope(subject="shared"), Guarantee(event.guarantee.epsilon * fit, 0.0, AddRemove())
    )
    results = FORK.SimpleQueue()
    clients = [
        FORK.Process(target=_client, args=(url, f"client-{n}", event, requests, results))
        for n in range(processes)
    ]
    for client in clients:
        client.start()
    outcomes = [results.get() for _ in clients]
    for client in clients:
        client.join(60)
    report = ledger.report(limit=processes)
    (budget,) = report.budgets
    answered = {name: count for name, count, _ in outcomes}
    found = ledger.verify()
    return {
        "exit codes": {client.exitcode for client in clients},
        "answered": sum(answered.values()),
        "refused": sum(refused for _, _, refused in outcomes),
        "left": budget.left_epsilon,
        "clients booked otherwise than answered": {
            a.scope.principal: a.commits for a in report.accounts
        }.items()
        ^ {name: count for name, count in answered.items() if count}.items(),
        "spent by no account": budget.spent_epsilon - sum(a.spent_epsilon for a in report.accounts),
        "problems": found.problems,
        "entries": found.entries,
    }


def _fair(*, fit: int, refused: int) -> dict[str, Any]:
    """Nothing is lost: as much is answered as is paid for; and the accounts, the rows below them
    and the chain agree.
    """
    nothing = {
        "left": 0,
        "clients booked otherwise than answered": set(),
        "spent by no account": 0,
        "problems": (),
    }
    return {
        "exit codes": {0},
        "answered": fit,
        "refused": refused,
        "entries": 1 + 2 * fit,
        **nothing,
    }


@pytest.mark.parametrize(
    ("processes", "requests"), [(4, 12), pytest.param(16, 500, marks=pytest.mark.soak)]
)
def test_processes_share_a_budget(
    ledger: Ledger, ledger_url: str, make_event: EventMaker, processes: int, requests: int
) -> None:
    fit = processes * requests * 3 // 4
    outcome = _compete(
        ledger,
        ledger_url,
        make_event(epsilon=0.001),
        processes=processes,
        requests=requests,
        fit=fit,
    )
    assert outcome == _fair(fit=fit, refused=processes * requests - fit)
