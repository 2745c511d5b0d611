"""Thousands of kills: no answer that anybody saw is uncharged, and no budget is overspent.

Clients charge, commit and only then show their answer, over and over, and are killed at any
moment. In one of the settings half of them live in mount namespaces of their own, in which the
ledger's folder has another name. All 5,000 kills run with ``--soak``; a hundredth of them
always.
"""

from __future__ import annotations

import ctypes
import os
import random
import select
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from reticent.accounting import PrivacyEvent
from reticent.core import AddRemove, Guarantee, Scope
from reticent.core.errors import BudgetExceeded, LedgerUnavailable
from reticent.ledger import Ledger
from reticent.ledger.statements import Session
from tests.events import make_event

FIT = 8
"""Answers that a budget has room for; so many that clients are killed before and after it is
spent.
"""

_NEW_NAMESPACE, _BIND, _PRIVATE = 0x20000, 0x1000, 0x4000 | 1 << 18


def _mount_in_a_namespace_of_its_own(folder: Path, name: Path) -> None:
    """Gives ``folder`` another name, which this process alone sees."""
    system = ctypes.CDLL(None, use_errno=True)
    for done in (
        system.unshare(_NEW_NAMESPACE),
        system.mount(None, b"/", None, _PRIVATE, None),
        system.mount(os.fsencode(folder), os.fsencode(name), None, _BIND, None),
    ):
        if done != 0:
            raise OSError(ctypes.get_errno(), "mounting")


def _fork(work: Callable[[int], None]) -> tuple[int, int]:
    """A child that runs ``work`` with one end of a pipe: its process id, and the other end."""
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(receiver)
            work(sender)
        finally:
            os._exit(0)
    os.close(sender)
    return child, receiver


def _lines(receiver: int) -> list[str]:
    """The whole lines that a child wrote before it was killed."""
    parts = []
    while part := os.read(receiver, 65536):
        parts.append(part)
    os.close(receiver)
    return [
        line.strip()
        for line in b"".join(parts).decode().splitlines(keepends=True)
        if line.endswith("\n")
    ]


def _answer(url: str, event: PrivacyEvent, subject: str, sender: int) -> None:
    """A client: no answer leaves before its receipt is booked."""
    ledger = Ledger.open(url, synchronous="NORMAL", lock_timeout=300.0)
    while True:
        try:
            reservation = ledger.reserve(Scope("client", subject), event, answers=1)
        except BudgetExceeded:
            os.write(sender, b"refused\n")
            return
        reservation.commit(f"answer {reservation.id}")
        os.write(sender, f"answer {reservation.id}\n".encode())


def _soak(
    ledger: Ledger,
    event: PrivacyEvent,
    kills: int,
    urls: tuple[str, str],
    enter: Callable[[], None],
) -> tuple[list[str], dict[str, int]]:
    """Kills clients in pairs, the second of which calls ``enter`` first and uses the second URL.

    Returns:
        The answers that were seen, and what the ledger charged for each that it knows, in
        micro-epsilon.
    """
    rng = random.Random(kills)
    lines: list[str] = []
    for pair in range(kills // 2):
        subject = f"round {pair // 8}"
        if pair % 8 == 0:
            ledger.grant(
                Scope(subject=subject), Guarantee(event.guarantee.epsilon * FIT, 0.0, AddRemove())
            )

        def plainly(sender: int, subject: str = subject) -> None:
            _answer(urls[0], event, subject, sender)

        def elsewhere(sender: int, subject: str = subject) -> None:
            enter()
            _answer(urls[1], event, subject, sender)

        clients = [_fork(plainly), _fork(elsewhere)]
        for child, receiver in clients:
            # Half of them die before their first answer is out, the others anywhere in those that
            # follow.
            if rng.random() < 0.5:
                select.select([receiver], [], [], 30)
            time.sleep(rng.uniform(0, 0.02))
            os.kill(child, signal.SIGKILL)
        for child, receiver in clients:
            os.waitpid(child, 0)
            lines += _lines(receiver)
    seen = [line for line in lines if line != "refused"]
    assert ledger.verify().problems == ()
    query = (
        "SELECT r.receipt, p.epsilon FROM entries r JOIN entries p ON p.seq = "
        "r.reservation WHERE r.action = 'commit'"
    )
    with ledger.store.read() as connection:
        charged = {row.receipt: row.epsilon for row in connection.exec_driver_sql(query)}
    budgets = ledger.report().budgets
    assert all(0 <= budget.left_epsilon <= 1000 * FIT for budget in budgets)
    assert sum(budget.spent_epsilon for budget in budgets) >= 1000 * len(seen)
    print(
        f"{kills} kills, {len(seen)} answers, {lines.count('refused')} clients refused, "
        f"{len(charged)} charged"
    )
    return seen, charged


@pytest.mark.parametrize(
    "kills", [18, pytest.param(1800, marks=[pytest.mark.soak, pytest.mark.timeout(7200)])]
)
def test_kills_leave_no_answer_uncharged(ledger: Ledger, ledger_url: str, kills: int) -> None:
    urls = ledger_url, ledger_url
    seen, charged = _soak(ledger, make_event(epsilon=0.001), kills, urls, lambda: None)
    assert len(seen) == len(set(seen)) > kills / 10
    assert [answer for answer in seen if charged.get(answer) != 1000] == []


@pytest.mark.parametrize(
    "kills", [14, pytest.param(1400, marks=[pytest.mark.soak, pytest.mark.timeout(7200)])]
)
def test_kills_in_mount_namespaces_leave_no_answer_uncharged(tmp_path: Path, kills: int) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()

    def enter() -> None:
        _mount_in_a_namespace_of_its_own(first, second)

    def attempt(sender: int) -> None:
        enter()
        os.write(sender, b"mounted\n")

    child, receiver = _fork(attempt)
    os.waitpid(child, 0)
    if _lines(receiver) != ["mounted"]:
        pytest.skip("mounting is not allowed here")
    ledger = Ledger.create(first / "ledger.db", synchronous="NORMAL")
    seen, charged = _soak(
        ledger,
        make_event(epsilon=0.001),
        kills,
        (str(first / "ledger.db"), str(second / "ledger.db")),
        enter,
    )
    assert len(seen) == len(set(seen)) > kills / 10
    assert [answer for answer in seen if charged.get(answer) != 1000] == []
    assert list(second.iterdir()) == []
    ledger.close()


def _create_and_die(url: str, at: int) -> None:
    """Makes a ledger, and is killed before its statement or commit number ``at``."""
    count = 0

    def counted(*_: object) -> None:
        nonlocal count
        count += 1
        if count == at:
            os.kill(os.getpid(), signal.SIGKILL)

    sa.event.listen(sa.Engine, "before_cursor_execute", counted)
    finish = Session.finish
    Session.finish = lambda session: (counted(), finish(session))[1]  # type: ignore[method-assign]
    Ledger.create(url, synchronous="NORMAL").close()


@pytest.mark.soak
def test_a_kill_at_any_statement_of_a_schema_step_leaves_none_or_all_of_it(ledger_url: str) -> None:
    """The one step that exists makes the tables. What is half made is taken for no ledger, and the
    same command makes it whole.
    """
    at, made = 0, False
    while not made:
        at += 1
        child = os.fork()
        if child == 0:
            try:
                _create_and_die(ledger_url, at)
            finally:
                os._exit(0)
        made = os.waitpid(child, 0)[1] == 0
        try:
            Ledger.open(ledger_url, synchronous="NORMAL").close()
        except LedgerUnavailable:
            assert not made
    print(f"killed at {at - 1} statements")
    assert at > 10
    ledger = Ledger.create(ledger_url, synchronous="NORMAL")
    ledger.grant(Scope(subject="ward"), Guarantee(1.0, 0.0, AddRemove()))
    ledger.reserve(Scope("client", "ward"), make_event(), answers=1).commit("answer")
    assert ledger.verify().problems == ()
    ledger.close()
