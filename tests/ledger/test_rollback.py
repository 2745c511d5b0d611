"""A ledger that went back in time is caught: by its anchor, and where that went back with it, by
clients' receipts.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from reticent.accounting import PrivacyEvent
from reticent.core import AddRemove, Guarantee, Receipt, Scope
from reticent.core.errors import BudgetExceeded, InvalidInput, LedgerUnavailable
from reticent.ledger import Ledger, schema
from reticent.ledger.charging import Reservation, charge_one
from reticent.ledger.store import Store
from tests.events import make_event
from tests.ledger.conftest import receipt_for

WARD = Scope("acme", "ward-7")
TEN = Guarantee(1.0, 1e-6, AddRemove())


def receipt_of(ledger: Ledger, event: PrivacyEvent, answers: int = 1) -> Receipt:
    reservation = ledger.reserve(WARD, event, answers=answers)
    found = receipt_for(reservation, event.guarantee, answers)
    reservation.commit(found.identifier)
    return found


def _an_old_copy(path: Path, spend: Callable[[], None]) -> None:
    shutil.copy(path, path.with_name("old"))
    spend()
    path.with_name("old").replace(path)


def _a_copy_without_its_log(path: Path, spend: Callable[[], None]) -> None:
    keeper = sqlite3.connect(
        path
    )  # as long as anybody has the file open, what is new stays in the log
    keeper.execute("SELECT * FROM head").fetchall()
    spend()
    shutil.copy(path, path.with_name("copy"))
    keeper.close()
    path.with_name("copy").replace(path)


def _a_tail_that_is_cut_off(path: Path, spend: Callable[[], None]) -> None:
    """Whoever knows SQLite: the guards off, the entries gone, every total mended, the guards on
    again.
    """
    with closing(sqlite3.connect(path)) as connection, connection:
        before = {
            name: connection.execute(f"SELECT * FROM {name}").fetchall()
            for name in ("head", "budgets", "nodes")
        }
    connection.close()
    spend()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA foreign_keys=OFF")
        for trigger in schema.SQLITE_TRIGGERS:
            connection.execute(f"DROP TRIGGER {trigger}")
        connection.execute("DELETE FROM accounts")
        connection.execute("DELETE FROM entries WHERE seq > 1")
        for name, rows in before.items():
            connection.execute(f"DELETE FROM {name}")
            connection.executemany(
                f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows
            )
        for sql in schema.SQLITE_TRIGGERS.values():
            connection.execute(sql)
    connection.close()


ROLLBACKS = [_an_old_copy, _a_copy_without_its_log, _a_tail_that_is_cut_off]


@pytest.mark.parametrize("rollback", ROLLBACKS)
def test_a_rollback_gives_no_budget_back(path: Path, rollback: Callable[..., None]) -> None:
    receipts: list[Receipt] = []

    def spend() -> None:
        ledger = Ledger.open(path, synchronous="NORMAL")
        receipts.append(receipt_of(ledger, make_event(), 10))
        ledger.close()

    rollback(path, spend)
    with pytest.raises(LedgerUnavailable, match="is older than its anchor"):
        Ledger.open(path)
    with pytest.raises(LedgerUnavailable, match="is older than its anchor"):
        Ledger.create(path)
    behind = Ledger(Store(path))  # whoever has it open all the time
    with pytest.raises(LedgerUnavailable, match="is older than its anchor"):
        behind.reserve(WARD, make_event(), answers=1)
    problems = behind.verify().problems
    assert any("an old copy was put back" in problem for problem in problems), problems
    assert behind.report().budgets[0].left_epsilon == 1_000_000  # by itself it looks whole
    # The same copy beside an anchor that was put back as well: only the client's receipt tells.
    fooled = Ledger(Store(path, anchor=path.parent.parent / "another state"))
    fooled.adopt()
    assert fooled.verify().ok
    (problem,) = fooled.verify(receipts=receipts).problems
    assert f"receipt {receipts[0].identifier} names entry 2, which is not here" in problem
    behind.close()
    fooled.close()


def test_what_was_lost_stays_charged_when_its_acceptance_is_lost_too(path: Path) -> None:
    old = path.read_bytes()
    with closing(Ledger.open(path, synchronous="NORMAL")) as ledger:
        receipt_of(ledger, make_event(), 3)
    for _ in range(3):
        path.write_bytes(old)
        with closing(Ledger(Store(path))) as ledger:
            ledger.accept_rollback(charge=True)
            (budget,) = ledger.report().budgets
            assert budget.spent_epsilon == 300_000
            assert ledger.verify().ok


@pytest.mark.postgres
def test_a_stale_copy_on_a_server_is_refused(postgres_url: str) -> None:
    ledger = Ledger.create(postgres_url)
    ledger.grant(Scope(subject="ward-7"), TEN)
    receipt_of(ledger, make_event(), 2)
    tables = [table.name for table in schema.metadata.sorted_tables]
    with ledger.store.write() as connection:
        connection.exec_driver_sql("CREATE SCHEMA kept")
        for name in tables:
            connection.exec_driver_sql(f"CREATE TABLE kept.{name} AS TABLE public.{name}")
    receipt = receipt_of(ledger, make_event(), 8)
    with ledger.store.write() as connection:
        connection.exec_driver_sql("ALTER TABLE entries DISABLE TRIGGER ALL")
        for name in reversed(tables):
            connection.exec_driver_sql(f"DELETE FROM {name}")
        for name in tables:
            connection.exec_driver_sql(f"INSERT INTO public.{name} SELECT * FROM kept.{name}")
        connection.exec_driver_sql("ALTER TABLE entries ENABLE TRIGGER ALL")
        connection.exec_driver_sql("DROP SCHEMA kept CASCADE")
    with pytest.raises(LedgerUnavailable, match="is older than its anchor"):
        ledger.reserve(WARD, make_event(), answers=1)
    with pytest.raises(LedgerUnavailable, match="is older than its anchor"):
        Ledger.open(postgres_url)
    assert any(
        receipt.identifier in problem for problem in ledger.verify(receipts=[receipt]).problems
    )
    assert ledger.accept_rollback(charge=True) == (800_000, 0)
    assert ledger.report().budgets[0].left_epsilon == 0
    assert ledger.verify().problems == ()
    ledger.close()


@pytest.fixture
def behind(path: Path) -> Ledger:
    """A ledger that lost seven answers of one budget, which has spent two others."""
    ledger = Ledger.open(path, synchronous="NORMAL")
    receipt_of(ledger, make_event(), 2)
    ledger.grant(Scope(subject="other"), TEN)
    ledger.close()
    shutil.copy(path, path.with_name("old"))
    receipt_of(ledger, make_event(), 7)
    ledger.close()
    path.with_name("old").replace(path)
    return Ledger(Store(path, synchronous="NORMAL"))


def left(ledger: Ledger) -> dict[str, int]:
    return {budget.scope.subject: budget.left_epsilon for budget in ledger.report().budgets}


def test_what_was_lost_is_charged_to_every_budget(behind: Ledger) -> None:
    assert left(behind) == {"ward-7": 800_000, "other": 1_000_000}
    lost = behind.anchor_file().read()
    assert lost is not None
    assert behind.accept_rollback(charge=True) == (700_000, 0)
    assert left(behind) == {"ward-7": 100_000, "other": 300_000}
    assert behind.verify().problems == ()
    entry = behind.report()
    assert (
        entry.entries == lost.seq + 3
    )  # past every position that was lost: no entry ever has another's
    found = receipt_of(behind, make_event())
    assert found.position > lost.seq
    assert behind.verify(receipts=[found]).ok
    with pytest.raises(BudgetExceeded):
        behind.reserve(WARD, make_event(), answers=1)
    # A budget that is granted later may have lost as much, too.
    with pytest.raises(BudgetExceeded, match=r"already spent epsilon=0\.7"):
        behind.grant(Scope(subject="new"), Guarantee(0.6, 0.0, AddRemove()))
    assert (
        behind.grant(Scope(subject="new"), Guarantee(0.8, 0.0, AddRemove())).left_epsilon == 100_000
    )
    assert behind.verify().problems == ()
    with pytest.raises(InvalidInput, match="nothing to accept"):
        behind.accept_rollback(charge=True)
    behind.close()


def test_a_budget_that_had_less_left_pays_the_rest_when_it_is_granted_more(path: Path) -> None:
    ledger = Ledger.open(path, synchronous="NORMAL")
    ledger.close()
    shutil.copy(path, path.with_name("old"))
    ledger.grant(Scope(subject="ward-7"), TEN)
    receipt_of(ledger, make_event(), 15)
    ledger.close()
    path.with_name("old").replace(path)
    behind = Ledger(Store(path, synchronous="NORMAL"))
    assert behind.accept_rollback(charge=True) == (1_500_000, 0)
    assert left(behind) == {"ward-7": 0}
    assert behind.verify().problems == ()
    assert behind.grant(Scope(subject="ward-7"), Guarantee(0.4, 0.0, AddRemove())).left_epsilon == 0
    assert (
        behind.grant(Scope(subject="ward-7"), Guarantee(0.4, 0.0, AddRemove())).left_epsilon
        == 300_000
    )
    assert behind.verify().problems == ()
    assert receipt_of(behind, make_event(), 3).answers == 3
    behind.close()


def test_an_operator_may_forget_what_was_lost(behind: Ledger) -> None:
    assert behind.accept_rollback(charge=False) == (0, 0)
    assert left(behind) == {"ward-7": 800_000, "other": 1_000_000}
    receipt_of(behind, make_event(), 8)
    assert behind.verify().problems == ()
    behind.close()


def test_another_anchor_accepts_for_itself(behind: Ledger, path: Path, tmp_path: Path) -> None:
    """An acceptance in the database vouches for nothing to whoever keeps another anchor: a
    forger could write one.
    """
    elsewhere = tmp_path / "another state" / "kept.anchor"
    elsewhere.parent.mkdir()
    shutil.copy(behind.anchor_file().path, elsewhere)
    behind.accept_rollback(charge=True)
    with pytest.raises(LedgerUnavailable, match="or was written to behind it"):
        Ledger.open(path, anchor=elsewhere)
    other = Ledger(Store(path, synchronous="NORMAL", anchor=elsewhere))
    # It cannot know what the two chains have in common, so it charges all that the one it knew had
    # spent.
    assert other.accept_rollback(charge=True) == (900_000, 0)
    assert other.verify().problems == ()
    assert left(other) == {"ward-7": 0, "other": 0}
    with pytest.raises(BudgetExceeded):
        behind.reserve(WARD, make_event(), answers=1)
    behind.close()
    other.close()


def test_two_copies_that_share_an_anchor_answer_once(path: Path) -> None:
    """The second copy is refused at its first charge, before its answer leaves."""
    shutil.copy(path, path.with_name("twin.db"))
    one, two = (
        Ledger.open(path, synchronous="NORMAL"),
        Ledger.open(path.with_name("twin.db"), synchronous="NORMAL"),
    )
    receipt_of(one, make_event())
    with pytest.raises(LedgerUnavailable, match="is older than its anchor"):
        two.reserve(WARD, make_event(), answers=1)
    receipt_of(one, make_event())
    one.close()
    two.close()


def test_a_copy_that_is_charged_at_the_same_moment_lets_no_answer_out(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both transactions have begun and looked at the anchor before either of them has moved it."""
    shutil.copy(path, path.with_name("twin.db"))
    one, two = (
        Ledger.open(path, synchronous="NORMAL"),
        Ledger.open(path.with_name("twin.db"), synchronous="NORMAL"),
    )
    transaction = two._transaction

    def meanwhile(*arguments: Any) -> Any:
        done = transaction(*arguments)
        receipt_of(one, make_event())
        return done

    monkeypatch.setattr(two, "_transaction", meanwhile)
    with pytest.raises(LedgerUnavailable, match="is older than its anchor"):
        two.reserve(WARD, make_event(), answers=1)
    one.close()
    two.close()


def test_a_charge_that_went_back_in_time_before_its_anchor_moved_takes_no_receipt(
    path: Path,
) -> None:
    def charge(ledger: Ledger) -> Reservation:
        posting = charge_one(ledger._commit, WARD, make_event(), answers=1, slack_delta=0.0)
        (done,) = ledger.post_together([posting.work], keep=False)
        return posting.result(done)  # type: ignore[arg-type]

    shutil.copy(path, path.with_name("old"))
    with closing(Ledger.open(path)) as ledger:
        lost = charge(ledger)
    path.with_name("old").replace(path)
    with closing(Ledger.open(path)) as ledger:
        other = charge(ledger)
        assert other.id == lost.id
        (refused,) = ledger.post_together([lost.committing("receipt")])
        assert isinstance(refused, InvalidInput)
        assert ledger.post_together([other.committing("receipt")]) == [None]


def test_an_anchor_that_cannot_be_written_stops_the_charge(path: Path) -> None:
    ledger = Ledger.open(path, synchronous="NORMAL")
    place = ledger.anchor_file().path.parent
    place.rename(place.with_name("moved"))
    place.write_text("in the way")
    try:
        with pytest.raises(LedgerUnavailable, match="anchor"):
            ledger.reserve(WARD, make_event(), answers=1)
    finally:
        place.unlink()
        place.with_name("moved").rename(place)
    assert left(ledger) == {"ward-7": 1_000_000}
    ledger.close()


def test_an_anchor_that_fails_after_the_charge_lets_no_answer_out(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The charge stays, and the next one moves the anchor past it."""
    ledger = Ledger.open(path, synchronous="NORMAL")
    with monkeypatch.context() as patch:
        patch.setattr(
            "reticent.ledger.chain.os.pwrite",
            lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")),
        )
        with pytest.raises(LedgerUnavailable, match="No space left"):
            ledger.reserve(WARD, make_event(), answers=1)
    receipt_of(ledger, make_event())
    assert left(ledger) == {"ward-7": 800_000}
    standing = ledger.anchor_file().read()
    assert standing is not None
    assert standing.seq == 3
    assert ledger.verify().problems == ()
    ledger.close()


def test_a_commit_whose_outcome_was_never_learned_may_be_repeated(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For several scopes, on both databases: the connection breaks when the transaction is
    through.
    """
    ledger.grant_each([Scope(subject=name) for name in ("ana", "ben")], TEN)
    reservation = ledger.reserve_each(
        [Scope(subject=name) for name in ("ana", "ben")], make_event()
    )
    done = ledger._transaction

    def lost(*arguments: Any) -> Any:
        done(*arguments)
        raise LedgerUnavailable("server closed the connection unexpectedly")

    with monkeypatch.context() as patch:
        patch.setattr(ledger, "_transaction", lost)
        with pytest.raises(LedgerUnavailable, match="closed the connection"):
            reservation.commit("receipt-1")
    reservation.commit("receipt-1")
    reservation.commit("receipt-1")
    assert ledger.report().entries == 6
    assert {(account.reservations, account.commits) for account in ledger.report().accounts} == {
        (1, 1)
    }
    assert ledger.verify().problems == ()
