from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from reticent.accounting import PrivacyEvent
from reticent.core import AddRemove, Guarantee, GuaranteeKind, Replace, Scope
from reticent.core.errors import (
    BudgetExceeded,
    IncompatibleGuarantees,
    InvalidInput,
    InvalidParameter,
    LedgerUnavailable,
)
from reticent.ledger import Ledger
from tests.events import make_event

ONE = Guarantee(1.0, 1e-6, AddRemove())


def spend(ledger: Ledger, scope: Scope, event: PrivacyEvent, answers: int = 1) -> str:
    with ledger.reserve(scope, event, answers=answers) as reservation:
        reservation.commit("receipt")
    return reservation.id


def left(ledger: Ledger, scope: Scope | None = None) -> list[int]:
    return [budget.left_epsilon for budget in ledger.report(scope).budgets]


def test_two_ledgers_of_one_process_share_no_row(tmp_path: Path) -> None:
    """Both have the same budget for "x", as its digest knows it, under another number of its
    statement: one of them had another statement before.
    """
    ours, theirs = AddRemove(data_set="ours"), AddRemove(data_set="theirs")
    for name, first in (("a", ours), ("b", theirs)):
        ledger = Ledger.create(tmp_path / f"{name}.db")
        ledger.grant(Scope(subject="u"), Guarantee(1.0, 0.0, first))
        ledger.grant(Scope(subject="x"), Guarantee(1.0, 0.0, theirs))
        spend(ledger, Scope(subject="x"), make_event(epsilon=0.1, adjacency=theirs))
        assert ledger.verify().ok


def test_delta_runs_out_too(ledger: Ledger, scope: Scope) -> None:
    ledger.grant(scope, ONE)
    event = make_event(epsilon=0.001, delta=3e-7)
    assert ledger.preview(scope, event, answers=1).largest == 3
    spend(ledger, scope, event, 3)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(scope, event, answers=1)


def test_uncommitted_reservations_stay_spent(ledger: Ledger, scope: Scope) -> None:
    ledger.grant(Scope(subject="ward-7"), ONE)
    with (
        pytest.raises(ZeroDivisionError),
        ledger.reserve(scope, make_event(epsilon=0.25), answers=1),
    ):
        _ = 1 / 0
    with (
        pytest.raises(InvalidInput, match=r"ended without commit"),
        ledger.reserve(scope, make_event(epsilon=0.25), answers=1),
    ):
        pass
    ledger.reserve(scope, make_event(epsilon=0.25), answers=1)
    (account,) = ledger.report().accounts
    assert (account.reservations, account.commits, account.spent_epsilon) == (3, 0, 750_000)
    assert ledger.verify().ok


def test_a_charge_that_was_committed_elsewhere_takes_no_second_receipt(
    ledger: Ledger, scope: Scope
) -> None:
    """The ledger itself says so, where an object that stands for the charge knows nothing of it."""
    ledger.grant(scope, ONE)
    reservation = ledger.reserve(scope, make_event(), answers=1)
    assert ledger.post_together([reservation.committing("first")]) == [None]
    assert not reservation.committed
    assert ledger.post_together([reservation.committing("first")]) == [None]  # a repeated try
    with pytest.raises(InvalidInput, match="another receipt"):
        reservation.commit("second")
    (account,) = ledger.report().accounts
    assert account.commits == 1
    assert ledger.verify().ok


def test_a_reservation_is_committed_once(ledger: Ledger, scope: Scope) -> None:
    ledger.grant(scope, ONE)
    reservation = ledger.reserve(scope, make_event(), answers=1)
    for wrong in ("", "a\nb", "x" * 1001):
        with pytest.raises(InvalidInput, match="receipt_id: expected"):
            reservation.commit(wrong)
    reservation.commit("once")
    with pytest.raises(InvalidInput, match="committed already"):
        reservation.commit("twice")


def test_an_over_large_request_uses_up_nothing_and_says_what_would_fit(
    ledger: Ledger, scope: Scope
) -> None:
    ledger.grant(scope, ONE)
    spend(ledger, scope, make_event(), 3)
    with pytest.raises(BudgetExceeded) as refused:
        ledger.reserve(scope, make_event(), answers=8)
    text = str(refused.value)
    for part in (
        "requested 8 answer(s)",
        "epsilon=0.8",
        "spent epsilon=0.3",
        "left epsilon=0.7",
        "ward-7",
        "would fit is 7 answer",
    ):
        assert part in text
    spend(ledger, scope, make_event(), 7)
    assert left(ledger) == [0]
    with pytest.raises(BudgetExceeded, match="would fit is 0 answer"):
        ledger.reserve(scope, make_event(), answers=1)


def test_nothing_is_answered_without_a_budget(ledger: Ledger) -> None:
    ledger.grant(Scope(subject="s"), ONE)
    for elsewhere in (Scope(subject="t"), Scope(principal="p")):
        with pytest.raises(BudgetExceeded, match="no budget covers"):
            ledger.reserve(elsewhere, make_event(), answers=1)
        with pytest.raises(BudgetExceeded, match="no budget covers"):
            ledger.preview(elsewhere, make_event(), answers=1)


@pytest.mark.parametrize(
    "other",
    [
        Guarantee(0.1, 0.0, Replace()),
        Guarantee(0.1, 0.0, AddRemove(2)),
        Guarantee(0.1, 0.0, AddRemove(data_set="ward 8")),
        Guarantee(0.1, 0.0, AddRemove(), GuaranteeKind.LIPSCHITZ_PRIVACY),
        Guarantee(0.1, 0.0, AddRemove(), GuaranteeKind.NO_PRIVACY),
    ],
)
def test_kinds_and_adjacencies_never_mix_in_a_scope(ledger: Ledger, other: Guarantee) -> None:
    ledger.grant(Scope(subject="s"), ONE)
    spend(ledger, Scope("p", "s"), make_event())
    before = ledger.report().anchor
    event = PrivacyEvent("other", other)
    with pytest.raises(IncompatibleGuarantees):
        ledger.reserve(Scope("p", "s"), event, answers=1)
    with pytest.raises(IncompatibleGuarantees):
        ledger.preview(Scope("p", "s"), event, answers=1)
    with pytest.raises(IncompatibleGuarantees):
        ledger.grant(Scope(subject="s"), other)
    with pytest.raises(IncompatibleGuarantees):
        ledger.grant(Scope(principal="p"), other)
    assert ledger.report().anchor == before


def test_a_batch_may_trade_delta_for_epsilon(ledger: Ledger, scope: Scope) -> None:
    ledger.grant(scope, Guarantee(20.0, 1e-4, AddRemove()))
    with pytest.raises(BudgetExceeded):
        ledger.reserve(scope, make_event(), answers=1000)
    preview = ledger.preview(scope, make_event(), answers=1000, slack_delta=1e-5)
    assert preview.fits
    reservation = ledger.reserve(scope, make_event(), answers=1000, slack_delta=1e-5)
    assert (reservation.charge.rule, reservation.charge.epsilon, reservation.charge.delta) == (
        "optimal",
        17_787_129,
        10_000_000,
    )
    (account,) = ledger.report().accounts
    assert (account.answers, account.reservations) == (1000, 1)


@pytest.mark.parametrize(
    "answers",
    [0, -1, 1.5, True, np.bool_(True), np.float64(3.0), "3", np.array([3]), None],
)
def test_what_is_no_number_of_answers_is_refused(
    ledger: Ledger, scope: Scope, answers: Any
) -> None:
    ledger.grant(scope, ONE)
    before = ledger.report().anchor
    with pytest.raises(InvalidParameter, match="answers="):
        ledger.reserve(scope, make_event(), answers=answers)
    with pytest.raises(InvalidParameter, match="answers="):
        ledger.preview(scope, make_event(), answers=answers)
    for wrong in (True, np.bool_(False), "0"):
        with pytest.raises(InvalidParameter, match="slack_delta="):
            ledger.reserve(scope, make_event(), answers=1, slack_delta=wrong)
        with pytest.raises(InvalidParameter, match="limit="):
            ledger.report(limit=wrong)
    assert ledger.report().anchor == before


def test_grants_too_large_for_a_ledger_are_refused(ledger: Ledger, scope: Scope) -> None:
    with pytest.raises(InvalidInput):
        ledger.grant(scope, Guarantee(1e13, 0.0, AddRemove()))
    ledger.grant(scope, Guarantee(1.0, 0.6, AddRemove()))
    with pytest.raises(InvalidInput, match="delta below 1"):
        ledger.grant(scope, Guarantee(1.0, 0.6, AddRemove()))
    assert ledger.verify().ok


def test_a_ledger_opened_before_a_fork_serves_both_sides(ledger: Ledger, scope: Scope) -> None:
    ledger.grant(scope, ONE)
    spend(ledger, scope, make_event())
    with ledger.store.read() as session:
        mine = session.driver
    child = os.fork()
    if child == 0:
        code = 1
        try:
            spend(ledger, scope, make_event(), 2)
            with ledger.store.read() as session:
                code = int(session.driver is mine)
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    spend(ledger, scope, make_event(), 3)
    assert left(ledger) == [400_000]
    assert ledger.verify().ok


def test_the_database_itself_refuses_what_the_library_would_not_do(
    ledger: Ledger, scope: Scope, ledger_url: str
) -> None:
    """Somebody with SQL and no library: overspending, mixing statements, rewriting or deleting
    entries.
    """
    ledger.grant(scope, ONE)
    ledger.grant(Scope(subject="other"), Guarantee(1.0, 0.0, Replace()))
    spend(ledger, scope, make_event())
    for statement in (
        "UPDATE budgets SET spent_epsilon = granted_epsilon + 1 WHERE id = 1",
        "UPDATE budgets SET spent_delta = -1 WHERE id = 1",
        "UPDATE accounts SET statement_id = 2 WHERE id = 1",
        "UPDATE entries SET epsilon = 0 WHERE seq = 2",
        "DELETE FROM entries WHERE seq = 3",
    ):
        with pytest.raises(LedgerUnavailable) as refused, ledger.store.write() as connection:
            connection.exec_driver_sql(statement)
        assert isinstance(refused.value.__cause__, sa.exc.DBAPIError)
    assert ledger.verify().ok
