"""How fast a ledger is: reserve-commit pairs per second, the same of many workers with and without
leases, rows of 10,000 people in one call, and report over a million entries.

    python benchmarks/ledger.py [--pairs 2000] [--people 10000] [--entries 1000000]
        [--workers 16] [--block 100] [--runs 3] [--postgres URL] [--folder FOLDER] [--only PART ...]

Claims: at least 3,000 pairs per second of CPU time on SQLite with synchronous=NORMAL, and 1,000 on
PostgreSQL; 16 workers
with leases at least 4,320 single reservations per second on one database, and none overspent;
10,000 people charged and committed in under 5 s; report over 10^6 entries in under 2 s. Peers,
measured in the same run: the same statements sent to SQLite without the ledger, one
call of 100 answers, workers that charge every answer by itself, and one call for each person.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from figures import Figure

from reticent.accounting import PrivacyEvent
from reticent.core import AddRemove, Guarantee, Scope
from reticent.core.errors import BudgetExceeded
from reticent.ledger import Budget, Leases, Ledger
from reticent.ledger.chain import Anchor, AnchorFile
from reticent.ledger.statements import Session

EVENT = PrivacyEvent("benchmark", Guarantee(1e-6, 0.0, AddRemove()))
BUDGET = Guarantee(1e5, 0.0, AddRemove())
PRINCIPALS, SUBJECTS = 20, 50
REST = 0.005
PARTS = ("sqlite", "postgres", "report")


class Pace(NamedTuple):
    """Seconds of a reserve-commit pair: by the clock, and of this process in its own code and in
    the kernel's. On a busy machine only the last two say what the code costs.
    """

    clock: float
    user: float
    system: float

    @property
    def rate(self) -> float:
        """Pairs a second of processor time."""
        return 1 / (self.user + self.system)

    def __str__(self) -> str:
        return (
            f"{self.rate:.0f} pairs per second of CPU time ({1e6 * self.user:.0f} us user and "
            f"{1e6 * self.system:.0f} us system each), {1 / self.clock:.0f} by the clock"
        )


def pace_of(ledger: Ledger, pairs: int, *, answers: int = 1, rest: float = 0.0) -> Pace:
    """The pace of so many pairs, with a rest before each charge and each commit."""
    ledger.grant(Scope(subject="s"), BUDGET)
    ledger.grant(Scope(principal="p"), BUDGET)
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    for number in range(pairs):
        if rest:
            time.sleep(rest)
        with ledger.reserve(Scope("p", "s"), EVENT, answers=answers) as reservation:
            if rest:
                time.sleep(rest)
            reservation.commit(f"receipt {number}")
    clock, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    return Pace(clock / pairs, user / pairs, system / pairs)


def _worker(url: str, pairs: int, block: int, ready: Any, go: Any, done: Any) -> None:
    """Single reservations until the budget is spent or ``pairs`` are made."""
    ledger = Ledger.open(url, synchronous="NORMAL", lock_timeout=600.0)
    books = Leases(ledger, block=block) if block > 1 else ledger
    answered = 0
    ready.put(None)
    go.wait()
    try:
        for number in range(pairs):
            books.reserve(Scope("p", "workers"), EVENT, answers=1).commit(f"receipt {number}")
            answered += 1
    except BudgetExceeded:
        pass
    books.close()
    done.put(answered)


def workers_per_second(
    ledger: Ledger, url: str, workers: int, pairs: int, block: int
) -> tuple[float, str]:
    """Single reservations a second of processes that share a budget for three quarters of what
    they ask for; and what was answered beside what was paid for.
    """
    subject = Scope(subject="workers")
    before = sum(one.granted_epsilon for one in _budgets(ledger, subject))
    total = workers * pairs * 3 // 4
    ledger.grant(subject, Guarantee(total * 1e-6, 0.0, AddRemove()))
    fork = multiprocessing.get_context("fork")
    ready, done, go = fork.SimpleQueue(), fork.SimpleQueue(), fork.Event()
    crew = [
        fork.Process(target=_worker, args=(url, pairs, block, ready, go, done))
        for _ in range(workers)
    ]
    for worker in crew:
        worker.start()
    for _ in crew:
        ready.get()
    start = time.perf_counter()
    go.set()
    answered = sum(done.get() for _ in crew)
    seconds = time.perf_counter() - start
    for worker in crew:
        worker.join()
    (budget,) = _budgets(ledger, subject)
    paid = budget.spent_epsilon - before
    assert budget.left_epsilon >= 0
    assert answered <= paid
    if budget.left_epsilon:
        ledger.reserve(Scope("p", "workers"), EVENT, answers=budget.left_epsilon).commit("rest")
    return answered / seconds, (
        f"{answered / seconds:.0f} single reservations/s; {answered} answered, {paid} paid for, "
        f"{max(0, answered - paid)} overspent"
    )


def charge_each(ledger: Ledger, people: int) -> str:
    """One row for each of ``people``, granted, charged and committed at once; twice, because the
    first call opens accounts.
    """
    scopes = [Scope("p", f"person {number}", "m") for number in range(people)]
    start = time.perf_counter()
    ledger.grant_each([Scope(subject=scope.subject) for scope in scopes], BUDGET)
    spent = [time.perf_counter() - start]
    for receipt in ("first", "second"):
        start = time.perf_counter()
        with ledger.reserve_each(scopes, EVENT) as reservation:
            reservation.commit(receipt)
        spent.append(time.perf_counter() - start)
    sample = scopes[: max(1, people // 50)]
    start = time.perf_counter()
    for scope in sample:
        with ledger.reserve(scope, EVENT, answers=1) as reservation:
            reservation.commit("third")
    single = (time.perf_counter() - start) * people / len(sample)
    granted, first, second = spent
    return (
        f"{people} people in one call: granted in {granted:.2f} s, charged and committed in "
        f"{first:.2f} s, again in "
        f"{second:.2f} s; one call each would take {single:.1f} s, ratio {single / second:.1f}"
    )


def bare_rate(ledger: Ledger, path: Path, synchronous: str, pairs: int) -> float:
    """Pairs a second of processor time of the same statements, sent to SQLite alone."""
    ledger.store.checkpoint()
    before = path.with_name("before.db")
    shutil.copy(path, before)
    seen: list[tuple[str, list[tuple[Any, ...]]]] = []
    answer, run = Session.answer, Session.run

    def answered(session: Session, text: str, values: tuple[Any, ...]) -> Any:
        seen.append((text, [values]))
        return answer(session, text, values)

    def ran(session: Session, text: str, each: Any, otherwise: Any = None) -> None:
        seen.append((text, list(each)))
        run(session, text, each, otherwise)

    with mock.patch.object(Session, "answer", answered), mock.patch.object(Session, "run", ran):
        for number in range(pairs):
            ledger.reserve(Scope("p", "s"), EVENT, answers=1).commit(f"receipt {number}")
    connection = sqlite3.connect(before, isolation_level=None)
    for pragma in (f"synchronous={synchronous}", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")
    busy = time.process_time()
    for at, (text, each) in enumerate(seen):
        if " FROM head " in text:  # the first of each transaction
            if at:
                connection.execute("COMMIT")
            connection.execute("BEGIN IMMEDIATE")
        if len(each) > 1:
            connection.executemany(text, each)
        else:
            connection.execute(text, each[0]).fetchall()
    connection.execute("COMMIT")
    rate = pairs / (time.process_time() - busy)
    assert connection.execute("SELECT seq FROM head").fetchone() == (ledger.anchor().seq,)
    connection.close()
    before.unlink()
    return rate


def bare_server_rate(ledger: Ledger, pairs: int) -> float:
    """Pairs a second of processor time of the same statements and round trips, by psycopg alone,
    to temporary tables of the same names.
    """
    from psycopg import RawCursor

    sent: list[tuple[list[tuple[str, Any]], str, Any]] = []
    send = Session._send

    def recorded(session: Session, text: str = "", values: tuple[Any, ...] = ()) -> Any:
        # A row that is not as it was, as those of the recorded pair will be, is no fault here.
        waiting = [(one.text.replace("1 / count", "count"), one.values) for one in session._waiting]
        sent.append((waiting, text, values))
        return send(session, text, values)

    with mock.patch.object(Session, "_send", recorded):
        ledger.reserve(Scope("p", "s"), EVENT, answers=1).commit("bare")
    seq = ledger.anchor().seq
    assert ledger.store._engine is not None
    with closing(Session(ledger.store._engine)) as session:
        connection = session.driver
        connection.prepare_threshold = 5  # as psycopg's own connections have it
        for name in ("head", "statements", "budgets", "accounts", "entries", "nodes"):
            connection.execute(f"CREATE TEMP TABLE {name} (LIKE {name} INCLUDING INDEXES)")
            connection.execute(f"INSERT INTO {name} SELECT * FROM public.{name}")
        busy = time.process_time()
        for _ in range(pairs):
            for waiting, text, values in sent:
                cursor, before = RawCursor(connection), RawCursor(connection)
                with connection.pipeline():
                    for statement, row in waiting:
                        if statement.startswith("INSERT INTO entries"):
                            seq += 1
                            row = (seq, *row[1:10], row[10] and seq - 1, *row[11:])
                        before.execute(statement, row)
                    cursor.execute(text, values)
                if cursor.description:
                    cursor.fetchall()
        return pairs / (time.process_time() - busy)


def fill(path: Path, entries: int) -> None:
    """Make a ledger of about ``entries`` entries, 2,000 in a transaction."""
    ledger = Ledger.create(path, synchronous="NORMAL")
    for subject in range(SUBJECTS):
        ledger.grant(Scope(subject=f"s{subject}"), BUDGET)
    scopes = [Scope(f"p{p}", f"s{s}") for s in range(SUBJECTS) for p in range(PRINCIPALS)]
    while ledger.anchor().seq < entries:
        with ledger.reserve_each(scopes, EVENT) as reservation:
            reservation.commit("receipt")
    ledger.close()


def anchors_per_second(folder: Path, count: int) -> str:
    """What keeping the last position outside the database costs: two of these in every pair."""
    rates = []
    for durable in (False, True):
        file = AnchorFile(folder / f"{durable}.anchor", durable=durable, patience=1.0)
        file.read(to_write=True)  # makes the folder
        start = time.perf_counter()
        for seq in range(1, count + 1):
            file.raise_to(Anchor("ledger", seq, "ab" * 32, seq, 0))
        rates.append(count / (time.perf_counter() - start))
    return f"{rates[0]:.0f} per second, {rates[1]:.0f} where it must survive a power cut"


def _budgets(ledger: Ledger, scope: Scope) -> list[Budget]:
    return [one for one in ledger.report(scope).budgets if one.scope == scope]


def compare_bare(
    name: str, ledger: Ledger, peer: str, bare: Callable[[int], float], pairs: int, runs: int
) -> None:
    """Pairs a second of processor time, beside the same statements without the ledger."""
    ours, theirs = [], []
    for _ in range(runs):
        pace = pace_of(ledger, pairs)
        print(f"{name}: {pace}", flush=True)
        ours.append(pace.rate)
        theirs.append(bare(pairs))
    rested = pace_of(ledger, pairs // 10, rest=REST)
    print(f"{name}, after rests of {REST:g} s, which empty the caches as a disk's do: {rested}")
    Figure.of(
        f"reserve-commit pairs in a second of CPU time, {name}",
        ours,
        unit="a second",
        peer=peer,
        theirs=theirs,
    ).keep()


def compare_workers(
    name: str, ledger: Ledger, url: str, workers: int, pairs: int, block: int, runs: int
) -> None:
    """The same workers with and without leases."""
    rates = []
    for size in (1, block):
        how = "each charged by itself" if size == 1 else f"in leases of {size}"
        number = max(1, pairs // workers) * (1 if size == 1 else 10)
        rates.append([])
        for _ in range(runs):
            rate, found = workers_per_second(ledger, url, workers, number, size)
            rates[-1].append(rate)
            print(f"  {workers} workers, {how}: {found}", flush=True)
    Figure.of(
        f"single reservations of {workers} workers in leases of {block}, {name}",
        rates[1],
        unit="a second",
        peer="each charged by itself",
        theirs=rates[0],
    ).keep()


def timed(label: str, work: object) -> None:
    start = time.perf_counter()
    result = work()  # type: ignore[operator]
    print(f"{label:<58}{time.perf_counter() - start:8.2f} s   {result}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--people", type=int, default=10_000)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--block", type=int, default=100)
    parser.add_argument("--runs", type=int, default=3, help="of the pairs, and of the workers")
    parser.add_argument("--postgres", help="URL of an empty PostgreSQL database")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=PARTS,
        default=PARTS,
        help="postgres where --postgres names a database",
    )
    parser.add_argument(
        "--folder", help="where the files are written; its disk is what FULL measures"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        for synchronous in ("NORMAL", "FULL") if "sqlite" in options.only else ():
            path = folder / f"{synchronous}.db"
            ledger = Ledger.create(path, synchronous=synchronous)
            compare_bare(
                f"SQLite {synchronous}",
                ledger,
                "the same statements, sent to SQLite alone",
                lambda pairs, path=path, synchronous=synchronous, ledger=ledger: bare_rate(
                    ledger, path, synchronous, pairs
                ),
                options.pairs,
                options.runs,
            )
            batched = pace_of(ledger, options.pairs // 10, answers=100).clock
            print(f"  in calls of 100 answers: {100 / batched:.0f} answers/s by the clock")
            print(f"  {charge_each(ledger, options.people)}")
            if synchronous == "NORMAL":
                url = str(folder / "NORMAL.db")
                compare_workers(
                    "SQLite",
                    ledger,
                    url,
                    options.workers,
                    options.pairs,
                    options.block,
                    options.runs,
                )
            ledger.close()
        if options.postgres and "postgres" in options.only:
            ledger = Ledger.create(options.postgres)
            send = Session._send
            with mock.patch.object(Session, "_send", autospec=True, side_effect=send) as sent:
                pace_of(ledger, 100)
            print(f"PostgreSQL: {sent.call_count / 100:.1f} round trips a pair")
            compare_bare(
                "PostgreSQL",
                ledger,
                "the same statements and round trips by psycopg alone",
                lambda pairs, ledger=ledger: bare_server_rate(ledger, pairs),
                options.pairs,
                options.runs,
            )
            print(f"  {charge_each(ledger, options.people)}")
            compare_workers(
                "PostgreSQL",
                ledger,
                options.postgres,
                options.workers,
                options.pairs,
                options.block,
                options.runs,
            )
            ledger.close()
        if "report" not in options.only:
            return
        print(f"  the anchor alone: {anchors_per_second(folder / 'state', options.pairs)}")
        print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        fill(folder / "large.db", options.entries)
        large = Ledger.open(folder / "large.db")
        timed(
            f"report over {options.entries} entries",
            lambda: f"{len(large.report().budgets)} budgets",
        )
        timed(
            "report of one subject",
            lambda: f"{large.report(Scope(subject='s7')).accounts_total} accounts",
        )
        timed("spending over time", lambda: f"{len(large.spending())} series")
        timed("verify", lambda: "ok" if large.verify().ok else large.verify().problems[:3])
        large.close()


if __name__ == "__main__":
    main()
