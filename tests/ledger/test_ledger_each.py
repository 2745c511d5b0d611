"""Charges and grants to many scopes at once: the same as one by one, or nothing at all."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import time
from collections import Counter
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reticent.accounting import PrivacyEvent
from reticent.core import AddRemove, Guarantee, GuaranteeKind, Replace, Scope
from reticent.core.errors import (
    BudgetExceeded,
    IncompatibleGuarantees,
    InvalidInput,
    LedgerUnavailable,
)
from reticent.ledger import Ledger
from tests.events import make_event
from tests.machine import wait_until
from tests.together import FORK, in_forks

NAMES = ["ana", "ben", "cy", "dee", "eve"]


def total(epsilon: float, delta: float = 0.0) -> Guarantee:
    return Guarantee(epsilon, delta, AddRemove())


def people(*names: str, principal: str = "clinic", bundle: str = "") -> list[Scope]:
    return [Scope(principal, name, bundle) for name in names]


def standing(ledger: Ledger) -> tuple[object, ...]:
    """All that a ledger says but its name, the times and how its entries are strung together."""
    report = ledger.report(limit=10**6)
    budgets = {
        (b.scope, b.statement, b.granted_epsilon, b.granted_delta, b.spent_epsilon, b.spent_delta)
        for b in report.budgets
    }
    accounts = {
        (a.scope, a.statement, a.spent_epsilon, a.spent_delta, a.answers, a.reservations, a.commits)
        for a in report.accounts
    }
    assert len(accounts) == report.accounts_total
    return budgets, accounts, report.entries


def randomly_granted(ledger: Ledger, rng: random.Random) -> None:
    """Budgets on every kind of pattern, some of which cover many of the others' requests."""
    for name in NAMES:
        ledger.grant(Scope(subject=name), total(rng.choice([0.5, 1.0, 5.0]), 1e-5))
    for scope in (
        Scope(principal="clinic"),
        Scope(bundle="m"),
        Scope("clinic", "ana"),
        Scope("clinic", "ben", "m"),
        Scope("clinic", "", "m"),
        Scope("", "cy", "m"),
    ):
        if rng.random() < 0.5:
            ledger.grant(scope, total(rng.choice([1.0, 3.0]), 1e-5))


def test_a_person_with_several_rows_pays_for_each_in_one_entry(ledger: Ledger) -> None:
    ledger.grant_each([Scope(subject=name) for name in ("ana", "ben")], total(1.0, 1e-6))
    with ledger.reserve_each(
        people("ben", "ana", "ben", "ben"), make_event(epsilon=0.1, delta=1e-8)
    ) as reservation:
        reservation.commit("receipt-1")
    report = ledger.report()
    assert reservation.id == f"{report.ledger[:8]}/3-4"
    assert (reservation.scopes, reservation.charge.epsilon, reservation.charge.delta) == (
        2,
        400_000,
        40_000,
    )
    assert {
        a.scope.subject: (a.spent_epsilon, a.answers, a.reservations, a.commits)
        for a in report.accounts
    } == {
        "ana": (100_000, 1, 1, 1),
        "ben": (300_000, 3, 1, 1),
    }
    with ledger.store.read() as connection:
        rows = connection.exec_driver_sql(
            "SELECT seq, action, answers, reservation, receipt FROM entries WHERE seq > 2 "
            "ORDER BY seq"
        )
        assert [tuple(row) for row in rows] == [
            (3, "reserve", 3, None, ""),
            (4, "reserve", 1, None, ""),
            (5, "commit", 0, 3, "receipt-1"),
            (6, "commit", 0, 4, "receipt-1"),
        ]
    assert ledger.verify().ok


@pytest.mark.parametrize(
    "shared", [Scope(bundle="m"), Scope(principal="clinic"), Scope("clinic", "", "m")]
)
def test_a_shared_budget_pays_for_all_or_none(ledger: Ledger, shared: Scope) -> None:
    """Each of the five fits by itself; only four fit together."""
    ledger.grant_each([Scope(subject=name) for name in NAMES], total(1.0, 1e-5))
    ledger.grant(shared, total(0.45, 1e-5))
    scopes, event = people(*NAMES, bundle="m"), make_event(epsilon=0.1)
    assert all(ledger.preview(scope, event, answers=1).fits for scope in scopes)
    before = standing(ledger)
    with pytest.raises(
        BudgetExceeded,
        match=r"5 of the scopes lack budget: .*left epsilon=0\.45.*for 5 answer.*of which 4 would",
    ):
        ledger.reserve_each(scopes, event)
    assert standing(ledger) == before
    ledger.reserve_each(scopes[:4], event)
    assert {b.left_epsilon for b in ledger.report().budgets if b.scope == shared} == {50_000}
    assert ledger.verify().ok


def test_another_adjacency_in_the_middle_stops_all(ledger: Ledger) -> None:
    ledger.grant_each([Scope(subject=name) for name in ("ana", "cy")], total(1.0))
    ledger.grant(Scope(subject="ben"), Guarantee(1.0, 0.0, Replace()))
    before = standing(ledger)
    with pytest.raises(IncompatibleGuarantees, match="budget of subject=ben"):
        ledger.reserve_each(people("ana", "ben", "cy"), make_event())
    nothing = PrivacyEvent("none", Guarantee(0.1, 0.0, AddRemove(), GuaranteeKind.NO_PRIVACY))
    with pytest.raises(IncompatibleGuarantees, match="promises nothing"):
        ledger.reserve_each(people("ana", "cy"), nothing)
    assert standing(ledger) == before


@pytest.mark.parametrize(
    ("scopes", "message"),
    [
        ([], "expected at least one Scope, got none"),
        (Scope(subject="ana"), "expected one Scope for each answer, got a single Scope"),
        ("ana", "got a single str"),
        (["ana"], "expected a Scope, got str"),
        ([Scope(subject="ana"), None], "expected a Scope, got NoneType"),
    ],
)
def test_what_are_no_scopes_is_refused(ledger: Ledger, scopes: Any, message: str) -> None:
    ledger.grant(Scope(subject="ana"), total(1.0))
    before = standing(ledger)
    with pytest.raises(InvalidInput, match=message):
        ledger.reserve_each(scopes, make_event())
    with pytest.raises(InvalidInput, match=message):
        ledger.grant_each(scopes, total(1.0))
    with pytest.raises(InvalidInput, match="expected a Scope, got list"):
        ledger.reserve([Scope(subject="ana")], make_event(), answers=1)  # type: ignore[arg-type]
    assert standing(ledger) == before


@pytest.mark.parametrize(
    ("amount", "error", "message"),
    [
        (
            total(0.25),
            BudgetExceeded,
            "subject=cy: requested a budget .* already spent epsilon=0.3",
        ),
        (Guarantee(1.0, 0.0, Replace()), IncompatibleGuarantees, "subject=ana"),
        (total(1.0, 0.6), InvalidInput, "subject=ana: expected a budget with delta below 1"),
    ],
)
def test_a_grant_that_one_scope_cannot_take_is_made_to_none(
    ledger: Ledger, amount: Guarantee, error: type[Exception], message: str
) -> None:
    ledger.grant(Scope(subject="ana"), total(1.0, 0.5))
    ledger.grant(Scope(principal="clinic"), total(1.0))
    ledger.reserve(Scope("clinic", "cy"), make_event(), answers=3)
    before = standing(ledger)
    with pytest.raises(error, match=message):
        ledger.grant_each([Scope(subject=name) for name in NAMES], amount)
    assert standing(ledger) == before


def test_thousands_of_people(ledger: Ledger) -> None:
    """More than fit into one query of any database, in an order of their own, with one name that
    no pattern may confuse.
    """
    names = [f"person {number}" for number in range(2500)] + ["%", "'"]
    ledger.grant_each([Scope(subject=name) for name in names], total(1.0))
    rng = random.Random(0)
    rows = [*names, *rng.choices(names, k=500)]
    rng.shuffle(rows)
    with ledger.reserve_each(people(*rows, bundle="m"), make_event()) as reservation:
        reservation.commit("receipt")
    assert len(reservation.id) < 40
    counted = Counter(rows)
    assert {b.scope.subject: b.spent_epsilon for b in ledger.report().budgets} == {
        n: 100_000 * k for n, k in counted.items()
    }
    assert ledger.verify().problems == ()
    with pytest.raises(BudgetExceeded, match=r"2502 of the scopes .*\| and 2500 more"):
        ledger.reserve_each(people(*names * 10, bundle="m"), make_event())


def test_a_database_that_fails_half_way_keeps_nothing(tmp_path: Path) -> None:
    """The fault is in the last statements: accounts and budgets were charged, and one entry
    cannot be written.
    """
    ledger = Ledger.create(tmp_path / "ledger.db", synchronous="NORMAL")
    ledger.grant_each([Scope(subject=name) for name in NAMES], total(1.0))
    before = standing(ledger), ledger.report().anchor
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection, connection:
        connection.execute(
            "CREATE TRIGGER fault BEFORE INSERT ON entries WHEN NEW.seq = 8 BEGIN SELECT "
            "RAISE(ABORT, 'disk I/O error'); END"
        )
    connection.close()
    with pytest.raises(LedgerUnavailable, match="reported a fault"):
        ledger.reserve_each(people(*NAMES), make_event())
    assert (standing(ledger), ledger.report().anchor) == before
    assert ledger.verify().problems == ("trigger fault is not part of a ledger",)
    ledger.close()


def _client(url: str, name: str, event: PrivacyEvent, requests: int) -> tuple[Counter[str], int]:
    ledger, rng = Ledger.open(url, synchronous="NORMAL", lock_timeout=300.0), random.Random(name)
    answered, refused = Counter[str](), 0
    for number in range(requests):
        rows = rng.choices(NAMES, k=rng.randint(1, 4))
        scopes = people(*rows, principal=name)
        try:
            if len(rows) > 1:
                reservation = ledger.reserve_each(scopes, event)
            else:
                reservation = ledger.reserve(scopes[0], event, answers=1)
            reservation.commit(f"{name}-{number}")
            answered.update(rows)
        except BudgetExceeded:
            refused += 1
    return answered, refused


@pytest.mark.parametrize(
    ("processes", "requests", "fit"),
    [(3, 14, 12), pytest.param(16, 500, 2000, marks=pytest.mark.soak)],
)
def test_processes_with_overlapping_people_never_overspend(
    ledger: Ledger, ledger_url: str, processes: int, requests: int, fit: int
) -> None:
    """Each person's budget has room for about half of the answers that are asked for."""
    event = make_event(epsilon=0.001)
    ledger.grant_each([Scope(subject=name) for name in NAMES], total(fit / 1000))
    names = [f"client-{n}" for n in range(processes)]
    outcomes = in_forks(*(partial(_client, ledger_url, name, event, requests) for name in names))
    answered = sum((count for count, _ in outcomes), Counter[str]())
    assert sum(refused for _, refused in outcomes) > 0
    report = ledger.report(limit=10**4)
    spent = {budget.scope.subject: budget.spent_epsilon // 1000 for budget in report.budgets}
    assert spent == dict(answered)
    assert max(spent.values()) == fit
    assert {(a.scope.principal, a.scope.subject): a.answers for a in report.accounts} == {
        (name, subject): count
        for name, (counts, _) in zip(names, outcomes, strict=True)
        for subject, count in counts.items()
    }
    assert all(a.reservations == a.commits for a in report.accounts)
    assert ledger.verify().problems == ()


def _charge_for_ever(url: str, event: PrivacyEvent) -> None:
    ledger = Ledger.open(url, synchronous="NORMAL")
    while True:
        with ledger.reserve_each(
            people(*(f"person {n}" for n in range(200))), event
        ) as reservation:
            reservation.commit("receipt")


@pytest.mark.parametrize("kills", [5, pytest.param(100, marks=pytest.mark.soak)])
def test_a_kill_leaves_all_charges_of_a_call_or_none(
    ledger: Ledger, ledger_url: str, kills: int
) -> None:
    ledger.grant_each([Scope(subject=f"person {n}") for n in range(200)], total(1e6))
    event, rng, seen = make_event(epsilon=0.001), random.Random(5), set()
    for _ in range(kills):
        victim = FORK.Process(target=_charge_for_ever, args=(ledger_url, event))
        before = ledger.report().entries
        victim.start()
        wait_until(lambda before=before: ledger.report().entries > before)
        time.sleep(rng.uniform(0, 0.05))
        os.kill(victim.pid or 0, signal.SIGKILL)
        victim.join()
        state = {
            (a.reservations, a.commits, a.spent_epsilon) for a in ledger.report(limit=200).accounts
        }
        assert len(state) == 1  # the same for each of the two hundred
        seen |= state
    assert len(seen) == kills
    assert ledger.verify().problems == ()


@pytest.mark.parametrize("seed", range(6))
def test_a_preview_of_many_says_what_the_request_does(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    ledger = Ledger.create(tmp_path / "ledger.db", required=(), synchronous="NORMAL")
    randomly_granted(ledger, rng)
    event = make_event(epsilon=rng.choice([0.1, 0.4, 1.0]))
    scopes = people(
        *rng.choices([*NAMES, "nobody"] if seed % 3 == 0 else NAMES, k=rng.randint(1, 8))
    )
    before = standing(ledger)
    preview = ledger.preview_each(scopes, event)
    assert standing(ledger) == before
    assert set(preview.lacking) <= set(scopes)
    if preview.fits:
        ledger.reserve_each(scopes, event)
        assert (preview.lacking, preview.reason) == ((), "")
        return
    assert preview.lacking
    with pytest.raises(BudgetExceeded) as refused:
        ledger.reserve_each(scopes, event)
    assert preview.reason == str(refused.value)
