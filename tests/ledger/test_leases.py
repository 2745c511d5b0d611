"""Blocks of answers that are charged at once and spent without the database: by many processes,
through kills, and with receipts that tell which answers they are for.
"""

from __future__ import annotations

import copy
import os
import pickle
import random
import select
import signal
import time
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import pytest

from reticent.core import AddRemove, Guarantee, Scope
from reticent.core.errors import BudgetExceeded, InvalidInput, InvalidParameter
from reticent.ledger import Leases, Ledger
from tests.events import make_event
from tests.ledger.conftest import receipt_for
from tests.release.asking import asked
from tests.together import FORK, in_forks, in_threads

SHARED = Scope(subject="shared")
HERE = Scope("client", "shared")
EVENT = make_event(epsilon=0.001)


def grant(ledger: Ledger, answers: int) -> None:
    ledger.grant(SHARED, Guarantee(answers / 1000, 0.0, AddRemove()))


def spent(ledger: Ledger) -> int:
    """Answers that the one budget has paid for."""
    (budget,) = ledger.report().budgets
    return budget.spent_epsilon // 1000


def test_a_lease_charges_once_and_is_spent_without_the_database(ledger: Ledger) -> None:
    grant(ledger, 1000)
    with ledger.lease(HERE, EVENT, answers=50) as lease:
        before = ledger.report().anchor
        parts = [lease.reserve(answers=size) for size in (1, 3, 46)]
        assert [part.id.split("#")[1] for part in parts] == ["1", "2-4", "5-50"]
        assert {part.position for part in parts} == {2}
        assert [part.charge.epsilon for part in parts] == [1000, 3000, 46000]
        with pytest.raises(BudgetExceeded, match=r"answers=1: lease .* has 0 left of 50"):
            lease.reserve(answers=1)
        with pytest.raises(InvalidInput, match="is part of a lease"):
            parts[0].committing("receipt 0")
        for number, part in enumerate(parts):
            part.commit(f"receipt {number}")
        assert ledger.report().anchor == before
    assert spent(ledger) == 50
    (account,) = ledger.report().accounts
    assert (account.answers, account.reservations, account.commits) == (50, 1, 1)
    receipts = [
        receipt_for(one, EVENT.guarantee, size) for one, size in zip(parts, (1, 3, 46), strict=True)
    ]
    found = ledger.verify(receipts=receipts)
    assert found.problems == ()


def test_a_lease_that_is_closed_spends_and_notes_nothing(ledger: Ledger) -> None:
    grant(ledger, 1000)
    lease = ledger.lease(HERE, EVENT, answers=50)
    late = lease.reserve(answers=2)
    lease.close()
    lease.close()
    assert lease.left == 0
    with pytest.raises(BudgetExceeded):
        lease.reserve(answers=1)
    with pytest.raises(InvalidInput, match="release nothing"):
        late.commit("too late")
    with (
        pytest.raises(ZeroDivisionError),
        ledger.lease(HERE, EVENT, answers=50) as failed,
    ):
        failed.reserve(answers=1 // 0)
    (account,) = ledger.report().accounts
    assert (account.reservations, account.commits) == (2, 1)
    with pytest.raises(InvalidInput, match="least=3: expected at most answers=2"):
        ledger.lease(HERE, EVENT, answers=2, least=3)


def test_blocks_get_smaller_where_a_budget_runs_low(ledger: Ledger) -> None:
    grant(ledger, 1000)
    assert ledger.lease(HERE, EVENT, answers=60).answers == 60  # 16 of them would fit
    assert ledger.lease(HERE, EVENT, answers=100).answers == 940 // 16
    assert ledger.lease(HERE, EVENT, answers=800, least=700).answers == 700
    rest = 940 - 940 // 16 - 700
    assert ledger.lease(HERE, EVENT, answers=800).answers == rest // 16
    before = spent(ledger)
    with pytest.raises(BudgetExceeded, match="requested 500 answer"):
        ledger.lease(HERE, EVENT, answers=800, least=500)
    assert spent(ledger) == before


def test_leases_renew_themselves_and_waste_only_the_last_block(ledger: Ledger) -> None:
    grant(ledger, 10_000)
    with Leases(ledger, block=10) as leases:
        for number in range(25):
            leases.reserve(HERE, EVENT, answers=3).commit(f"receipt {number}")
        assert spent(ledger) == 81  # blocks of 9, not of 10
        leases.reserve(HERE, EVENT, answers=11).commit("by itself")
        assert spent(ledger) == 92
        leases.reserve(Scope("other", "shared"), EVENT, answers=1).commit("another scope")
    accounts = {account.scope.principal: account for account in ledger.report().accounts}
    assert (accounts["client"].reservations, accounts["client"].commits) == (10, 10)
    assert (accounts["other"].answers, accounts["other"].commits) == (10, 1)
    assert ledger.verify().ok
    for wrong in ({"block": 0}, {"block": 1, "lifetime": 0.0}):
        with pytest.raises(InvalidParameter):
            Leases(ledger, **wrong)  # type: ignore[arg-type]


def test_every_answer_of_a_budget_can_be_leased(ledger: Ledger) -> None:
    grant(ledger, 137)
    with Leases(ledger, block=20) as leases:
        for number in range(137):
            leases.reserve(HERE, EVENT, answers=1).commit(f"receipt {number}")
        with pytest.raises(BudgetExceeded, match="would fit is 0 answer"):
            leases.reserve(HERE, EVENT, answers=1)
    assert spent(ledger) == 137


def test_old_blocks_are_given_up(ledger: Ledger) -> None:
    grant(ledger, 10_000)
    now = [0.0]
    with Leases(ledger, block=10, lifetime=5.0, clock=lambda: now[0]) as leases:
        for moment in (0.0, 4.9, 5.0):
            now[0] = moment
            leases.reserve(HERE, EVENT, answers=1).commit(f"at {moment}")
    assert spent(ledger) == 20


def test_a_release_is_booked_in_a_lease(ledger: Ledger) -> None:
    class Mechanism:
        name, guarantee, event = "test", EVENT.guarantee, EVENT

    class Query:
        mechanism, certificate = Mechanism(), "none"

        def answer(self, inputs: Any, *, sampler: Any) -> Any:
            return np.asarray(inputs), np.zeros(len(inputs), dtype=np.bool_)

    grant(ledger, 1000)
    with Leases(ledger, block=10) as leases:
        releases = [asked(Query(), [1.0, 2.0], ledger=leases, scope=HERE) for _ in range(3)]
    assert [one.receipt.booked.split("#")[1] for one in releases] == ["1-2", "3-4", "5-6"]
    assert ledger.verify(receipts=[one.receipt for one in releases]).problems == ()
    with pytest.raises(BudgetExceeded):
        leases.reserve_each([Scope(subject="nobody")], EVENT)


def test_receipts_of_one_lease_cannot_claim_the_same_answers(ledger: Ledger) -> None:
    grant(ledger, 1000)
    lease = ledger.lease(HERE, EVENT, answers=10)
    first, second = (
        receipt_for(lease.reserve(answers=4), EVENT.guarantee, 4).to_dict() for _ in range(2)
    )
    assert ledger.verify(receipts=[first, second]).problems == ()  # the lease is still open
    stem = first["booked"].split("#")[0]
    again = second | {"booked": f"{stem}#4-7"}
    (problem,) = ledger.verify(receipts=[first, again]).problems
    assert "were given the same answers of entry 2" in problem
    beyond = second | {"booked": f"{stem}#8-11"}
    (problem,) = ledger.verify(receipts=[first, beyond]).problems
    assert second["identifier"] in problem


def test_copies_and_forked_children_have_no_answers(ledger: Ledger) -> None:
    grant(ledger, 1000)
    lease = ledger.lease(HERE, EVENT, answers=10)
    reservation = lease.reserve(answers=1)
    for owner in (lease, Leases(ledger, block=10)):
        for copied in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(InvalidInput, match="cannot be copied or pickled"):
                copied(owner)

    def ask() -> tuple[int, list[str]]:
        outcomes = []
        for work in (
            lambda: lease.reserve(answers=1),
            lambda: reservation.commit("here"),
            lease.close,
        ):
            try:
                work()
                outcomes.append("answered")
            except (BudgetExceeded, InvalidInput) as error:
                outcomes.append(type(error).__name__)
        return lease.left, outcomes

    assert in_forks(ask) == [(0, ["BudgetExceeded", "InvalidInput", "InvalidInput"])]
    assert lease.left == 9
    reservation.commit("there")
    lease.close()


def test_a_forked_child_takes_blocks_of_its_own(ledger: Ledger) -> None:
    grant(ledger, 1000)
    leases = Leases(ledger, block=10)
    leases.reserve(HERE, EVENT, answers=1).commit("parent")

    def ask() -> str:
        taken = leases.reserve(HERE, EVENT, answers=1)
        taken.commit("child")
        leases.close()
        return taken.id

    with leases._turn:  # a thread of the parent is at work while it forks
        (identifier,) = in_forks(ask)
    assert identifier.endswith("#1")
    leases.close()
    assert spent(ledger) == 20
    (account,) = ledger.report().accounts
    assert (account.reservations, account.commits) == (2, 2)


def test_threads_spend_no_answer_twice(ledger: Ledger) -> None:
    grant(ledger, 400)
    seen: list[str] = []
    with Leases(ledger, block=7) as leases:

        def work() -> None:
            for _ in range(25):
                reservation = leases.reserve(HERE, EVENT, answers=1)
                seen.append(reservation.id)
                reservation.commit(reservation.id)

        in_threads(*[work] * 4)
    assert len(seen) == len(set(seen)) == 100
    (account,) = ledger.report().accounts
    assert account.reservations == account.commits == -(-100 // 7)
    assert ledger.verify().ok


def _spend(url: str, name: str, requests: int, block: int) -> int:
    answered = 0
    with Leases(Ledger.open(url, synchronous="NORMAL", lock_timeout=300.0), block=block) as leases:
        for number in range(requests):
            try:
                leases.reserve(Scope(name, "shared"), EVENT, answers=1).commit(f"{number}")
                answered += 1
            except BudgetExceeded:
                break
    return answered


def test_workers_share_a_budget_and_never_overspend_it(ledger: Ledger, ledger_url: str) -> None:
    grant(ledger, 500)
    answered = in_forks(
        *(partial(_spend, ledger_url, f"worker {n}", requests=400, block=50) for n in range(4))
    )
    # The last blocks hold one answer each. A worker that got all of its 400 may leave part of one.
    assert 450 < sum(answered) <= spent(ledger) == 500
    assert ledger.verify().problems == ()


def _answer_until_killed(url: str, workers: int, sender: Connection) -> None:
    """A driver with workers, each of which lets an answer out once its receipt is noted."""
    for _ in range(workers):
        child = os.fork()
        if child == 0:
            leases = Leases(Ledger.open(url, synchronous="NORMAL", lock_timeout=300.0), block=20)
            os.write(sender.fileno(), f"worker {os.getpid()}\n".encode())
            while True:
                try:
                    taken = leases.reserve(HERE, EVENT, answers=1)
                except BudgetExceeded:
                    os._exit(0)
                taken.commit(taken.id)
                os.write(sender.fileno(), f"{taken.id}\n".encode())
                time.sleep(0.0005)
    time.sleep(3600)


@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=pytest.mark.soak)])
def test_kills_of_workers_and_driver_waste_answers_and_never_overspend(
    ledger: Ledger, ledger_url: str, kills: int
) -> None:
    grant(ledger, 400 * kills)
    rng, seen = random.Random(kills), []
    for _ in range(kills):
        receiver, sender = FORK.Pipe(duplex=False)
        driver = FORK.Process(target=_answer_until_killed, args=(ledger_url, 3, sender))
        driver.start()
        sender.close()
        lines, workers = b"", []
        while len(workers) < 3 or lines.count(b"#") < 3:
            select.select([receiver.fileno()], [], [], 60)
            lines += os.read(receiver.fileno(), 65536)
            workers = [int(line[7:]) for line in lines.split(b"\n") if line.startswith(b"worker")]
        time.sleep(rng.uniform(0, 0.05))
        for victim in rng.sample([driver.pid or 0, *workers], 4):
            os.kill(victim, signal.SIGKILL)
        driver.join()
        while part := os.read(receiver.fileno(), 65536):
            lines += part
        receiver.close()
        seen += [line for line in lines.decode().splitlines() if "#" in line]
    assert len(seen) == len(set(seen)) >= 3 * kills
    assert ledger.verify().problems == ()
    assert len(seen) <= spent(ledger) <= 400 * kills
    with ledger.store.read() as connection:
        query = "SELECT seq, answers FROM entries WHERE action = 'reserve'"
        paid = {row.seq: row.answers for row in connection.exec_driver_sql(query)}
    for line in seen:
        entry, answer = line.split("/")[1].split("#")
        assert int(answer) <= paid[int(entry)]
    # What was not wasted can still be asked for.
    left = 400 * kills - spent(ledger)
    if left:
        ledger.reserve(HERE, EVENT, answers=left).commit("the rest")
    assert spent(ledger) == 400 * kills
