"""A server is told where the chain should end by a writer whom nobody came between before."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from unittest import mock

import pytest

from reticent.core import AddRemove, Guarantee, Scope
from reticent.core.errors import (
    BudgetExceeded,
    CorruptLedger,
    InvalidInput,
    LedgerUnavailable,
)
from reticent.ledger import Ledger
from reticent.ledger.chain import Anchor
from reticent.ledger.statements import Session
from tests.events import make_event

WARD = Scope(subject="ward-7")
ONE = Guarantee(1.0, 0.0, AddRemove())
pytestmark = pytest.mark.postgres


@pytest.fixture
def alone(postgres_url: str) -> Iterator[Ledger]:
    """A ledger that only one has written to, whose anchor names the last entry but one."""
    made = Ledger.create(postgres_url)
    made.grant(WARD, ONE)
    for number in range(3):
        made.reserve(WARD, make_event(), answers=1).commit(f"receipt {number}")
    yield made
    made.close()


@pytest.fixture
def other(postgres_url: str, alone: Ledger) -> Iterator[Ledger]:
    opened = Ledger.open(postgres_url)
    yield opened
    opened.close()


def trips(work: Callable[[], object]) -> int:
    with mock.patch.object(Session, "_send", autospec=True, side_effect=Session._send) as sent:
        work()
    return int(sent.call_count)


def test_one_round_trip_is_enough_where_nobody_came_between(alone: Ledger, other: Ledger) -> None:
    def pair() -> None:
        alone.reserve(WARD, make_event(), answers=1).commit("receipt")

    assert trips(pair) == 2
    other.reserve(WARD, make_event(), answers=1)
    assert trips(pair) > 2
    for _ in range(2):
        pair()
    assert trips(pair) == 2
    assert alone.verify().problems == ()


CLIENT, NEXT_WARD = Scope(principal="acme"), Scope(subject="ward-8")
MEANWHILE: dict[str, tuple[Callable[[Ledger], object], Scope, int, type[Exception] | None]] = {
    "charged": (lambda one: one.reserve(WARD, make_event(), answers=7), WARD, 1, BudgetExceeded),
    "charged less": (lambda one: one.reserve(WARD, make_event(), answers=6), WARD, 1, None),
    "taken back": (lambda one: one.lower(WARD), WARD, 1, BudgetExceeded),
    "granted more": (lambda one: one.grant(WARD, ONE), WARD, 17, None),
    "granted at all": (lambda one: one.grant(NEXT_WARD, ONE), NEXT_WARD, 1, None),
    "stricter": (lambda one: one.set_policy(["principal"]), WARD, 1, InvalidInput),
    "laxer": (lambda one: (one.set_policy([]), one.grant(CLIENT, ONE)), CLIENT, 1, None),
}


@pytest.mark.parametrize("meanwhile", MEANWHILE)
def test_what_others_did_decides(alone: Ledger, other: Ledger, meanwhile: str) -> None:
    work, scope, answers, refusal = MEANWHILE[meanwhile]
    work(other)
    with pytest.raises(refusal) if refusal else nullcontext():
        alone.reserve(scope, make_event(), answers=answers).commit("receipt")
    assert alone.verify().problems == ()


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE entries SET digest = '' WHERE seq = {last}",
        "DELETE FROM entries WHERE seq = {last}",
        (
            "INSERT INTO entries SELECT seq + 1, at, 'note', NULL, NULL, NULL, 0, 0, 0, '', NULL, "
            "'', state, digest FROM entries WHERE seq = {last}"
        ),
        "UPDATE entries SET digest = '' WHERE seq = {last} - 1",
        "UPDATE head SET spent_epsilon = 0",
        "UPDATE head SET required = ''",
        "UPDATE head SET root = link",
    ],
)
def test_an_end_that_was_edited_is_noticed(alone: Ledger, sql: str) -> None:
    last = alone.anchor().seq
    with alone.store.write() as connection:
        connection.exec_driver_sql("ALTER TABLE entries DISABLE TRIGGER ALL")
        assert connection.exec_driver_sql(sql.format(last=last)).rowcount == 1
    with pytest.raises((CorruptLedger, LedgerUnavailable), match=r"head|is older than its anchor"):
        alone.reserve(WARD, make_event(), answers=1)
    with alone.store.read() as connection:
        assert connection.exec_driver_sql("SELECT seq FROM head").scalar() == last


@pytest.mark.parametrize("table", ["budgets", "accounts"])
def test_a_row_that_was_edited_is_named(alone: Ledger, table: str) -> None:
    with alone.store.write() as connection:
        connection.exec_driver_sql(f"UPDATE {table} SET spent_epsilon = 0")
    with pytest.raises(CorruptLedger, match=f"a row of the table {table}"):
        alone.reserve(WARD, make_event(), answers=1)


@pytest.mark.parametrize("whole", [True, False])
def test_a_division_by_zero_elsewhere_is_no_edited_row(
    alone: Ledger, other: Ledger, whole: bool
) -> None:
    with alone.store.write() as connection:
        connection.exec_driver_sql(
            "CREATE FUNCTION divide() RETURNS trigger LANGUAGE plpgsql AS "
            "'BEGIN PERFORM 1 / 0; END'"
        )
        connection.exec_driver_sql(
            "CREATE CONSTRAINT TRIGGER at_the_end AFTER INSERT ON entries "
            "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION divide()"
        )
    with pytest.raises(LedgerUnavailable, match="division by zero"):
        (alone if whole else other).reserve(WARD, make_event(), answers=1)


def test_an_entry_that_the_server_lost_is_missed(alone: Ledger) -> None:
    """The anchor names it, and the ledger ends where this writer knows that it ended."""
    reservation = alone.reserve(WARD, make_event(), answers=1)
    last = alone.anchor()
    alone.anchor_file().raise_to(Anchor(last.ledger, last.seq + 1, "0" * 64, last.epsilon, 0))
    with pytest.raises(LedgerUnavailable, match="is older than its anchor"):
        reservation.commit("receipt")
    assert alone.anchor() == last


def test_statements_stay_prepared_whatever_else_is_done(alone: Ledger) -> None:
    with alone.store.write() as connection:
        for _ in range(10):
            connection.exec_driver_sql("CREATE TABLE passing (id int)")
            connection.exec_driver_sql("DROP TABLE passing")
    alone.reserve(WARD, make_event(), answers=1).commit("receipt")


def test_a_statement_is_prepared_once_though_its_transaction_was_undone(
    alone: Ledger, other: Ledger
) -> None:
    def prepared() -> int:
        with alone.store.write() as session:
            ((found,),) = session.answer("SELECT count(*) FROM pg_prepared_statements", ())
        return int(found)

    def come_between() -> None:
        other.grant(WARD, ONE)
        for _ in range(5):  # the first is sent whole, in vain; the next would be again
            alone.reserve(WARD, make_event(), answers=1)

    alone.close()  # a new connection, on which nothing was ever sent whole
    come_between()
    come_between()
    before = prepared()
    come_between()
    assert prepared() == before


def test_a_client_that_stops_before_it_sends_is_thrown_out(postgres_url: str) -> None:
    """A server waits without end for the rest of a message, and for the whole of none."""

    class Slow(tuple[object, ...]):
        __slots__ = ()

        def __len__(self) -> int:
            time.sleep(1.5)
            return super().__len__()

    made = Ledger.create(postgres_url, lock_timeout=2.0)

    def stop() -> None:
        with made.store.write() as session:
            session.answer("SELECT 1 FROM head FOR UPDATE", ())
            session.run("SELECT $1::text", [("x" * (1 << 17),)])
            session.answer("SELECT 1", Slow())

    with pytest.raises(LedgerUnavailable, match="kept the ledger from others for too long"):
        stop()
    made.close()


def test_a_server_says_that_somebody_ended_the_connection(alone: Ledger) -> None:
    with (
        pytest.raises(LedgerUnavailable, match=r"has ended it \[terminating connection"),
        alone.store.write() as session,
    ):
        session.answer("SELECT pg_terminate_backend(pg_backend_pid())", ())
    alone.reserve(WARD, make_event(), answers=1).commit("receipt")


def test_a_server_says_why_it_ended_the_connection(postgres_url: str) -> None:
    made = Ledger.create(postgres_url, lock_timeout=2.0)

    def dawdle() -> None:
        with made.store.write() as session:
            session.answer("SELECT 1", ())
            time.sleep(1.5)
            session.answer("SELECT 1", ())

    with pytest.raises(LedgerUnavailable, match="kept the ledger from others for too long"):
        dawdle()
    made.close()
