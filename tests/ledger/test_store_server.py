"""What a PostgreSQL server and a client that stops may do, and what nobody gets to read."""

from __future__ import annotations

import logging
import os
import signal
import time
import traceback
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, quote_plus, unquote

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import make_url

from reticent.core import AddRemove, Guarantee, Scope
from reticent.core.errors import BudgetExceeded, LedgerUnavailable
from reticent.ledger import Ledger, schema
from reticent.ledger.store import Store
from tests.events import make_event
from tests.together import FORK, in_threads

WARD = Scope(subject="ward-7")
pytestmark = pytest.mark.postgres


@pytest.fixture(params=["repeatable read", "serializable"])
def strict_url(request: pytest.FixtureRequest, postgres_url: str) -> Iterator[str]:
    """A server whose default isolation makes writers that meet fail."""
    engine = sa.create_engine(postgres_url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as connection:
        connection.exec_driver_sql(
            f"ALTER ROLE reticent SET default_transaction_isolation = '{request.param}'"
        )
        yield postgres_url
        connection.exec_driver_sql("ALTER ROLE reticent RESET default_transaction_isolation")


def test_every_answer_that_is_paid_for_comes_whatever_the_servers_isolation(
    strict_url: str,
) -> None:
    """Ten clients of ten requests on a budget for exactly as many."""
    Ledger.create(strict_url).grant(WARD, Guarantee(10.0, 0.0, AddRemove()))
    outcomes: list[str] = []

    def ask() -> None:
        ledger = Ledger.open(strict_url)
        for number in range(10):
            try:
                ledger.reserve(WARD, make_event(), answers=1).commit(f"receipt {number}")
                outcomes.append("answered")
            except (BudgetExceeded, LedgerUnavailable) as error:
                outcomes.append(str(error))
        ledger.close()

    in_threads(*[ask] * 10)
    assert outcomes == ["answered"] * 100
    assert Ledger.open(strict_url).verify().problems == ()


def test_a_transaction_that_the_server_undid_is_begun_again(postgres_url: str) -> None:
    ledger = Ledger.create(postgres_url)
    ledger.grant(WARD, Guarantee(1.0, 0.0, AddRemove()))
    with ledger.store.write() as connection:
        connection.exec_driver_sql("CREATE SEQUENCE attempts")
        connection.exec_driver_sql(
            """CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF nextval('attempts') <= 3 THEN RAISE EXCEPTION 'again' USING ERRCODE = '40P01';
            END IF; RETURN NEW; END $$"""
        )
        connection.exec_driver_sql(
            "CREATE TRIGGER refuse BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION refuse()"
        )
    ledger.reserve(WARD, make_event(), answers=1)
    with ledger.store.read() as connection:
        assert connection.exec_driver_sql("SELECT last_value FROM attempts").scalar() == 4
    with ledger.store.write() as connection:
        connection.exec_driver_sql("ALTER SEQUENCE attempts RESTART WITH -100 MINVALUE -100")
    with pytest.raises(LedgerUnavailable, match="again"):
        ledger.reserve(WARD, make_event(), answers=1)
    assert ledger.report().entries == 2
    ledger.close()


def _hold(url: str, ready: Any) -> None:
    store = Store(url, lock_timeout=2.0)
    with store.write() as connection:
        connection.execute(sa.select(schema.head).with_for_update())
        ready.send("holding")
        time.sleep(600)


def test_a_client_that_is_stopped_keeps_nobody_waiting_for_long(postgres_url: str) -> None:
    ledger = Ledger.create(postgres_url, lock_timeout=20.0)
    ledger.grant(WARD, Guarantee(1.0, 0.0, AddRemove()))
    receiver, sender = FORK.Pipe(duplex=False)
    holder = FORK.Process(target=_hold, args=(postgres_url, sender))
    holder.start()
    try:
        assert receiver.recv() == "holding"
        os.kill(holder.pid or 0, signal.SIGSTOP)
        start = time.monotonic()
        ledger.reserve(WARD, make_event(), answers=1).commit("receipt")
        assert time.monotonic() - start < 10.0
    finally:
        holder.kill()
        holder.join()
    assert ledger.verify().problems == ()
    ledger.close()


@pytest.mark.parametrize("timeout", [0.0004, 0.3])
def test_a_short_timeout_is_short(postgres_url: str, timeout: float) -> None:
    """Less than a millisecond means a millisecond; to the server 0 means for ever."""
    ledger = Ledger.create(postgres_url)
    ledger.grant(WARD, Guarantee(1.0, 0.0, AddRemove()))
    hasty = Ledger.open(postgres_url, lock_timeout=timeout)
    with ledger.store.write() as connection:
        connection.execute(sa.select(schema.head).with_for_update())
        start = time.monotonic()
        with pytest.raises(LedgerUnavailable, match=f"held the ledger for more than {timeout:g} s"):
            hasty.reserve(WARD, make_event(), answers=1)
        assert time.monotonic() - start < 5.0
    hasty.close()
    ledger.close()


def test_options_of_the_url_are_kept(postgres_url: str) -> None:
    url = make_url(postgres_url).update_query_dict(
        {"options": "-c application_name=ours", "connect_timeout": "5"}
    )
    store = Store(url.render_as_string(hide_password=False))
    with store.read() as connection:
        assert connection.exec_driver_sql("SHOW application_name").scalar() == "ours"
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
        assert (
            connection.exec_driver_sql("SHOW idle_in_transaction_session_timeout").scalar() == "30s"
        )
    with store.write() as connection:
        assert connection.exec_driver_sql("SHOW transaction_isolation").scalar() == "read committed"
        assert connection.exec_driver_sql("SHOW statement_timeout").scalar() == "6min"
    store.close()


SECRET = "hunter2%2F%25%26%27%22%3D%20"
PLAIN = unquote(SECRET)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{SECRET}@127.0.0.1:1/none",
        f"postgresql://me@127.0.0.1:1/none?password={SECRET}",
        f"postgresql://me@127.0.0.1:1/none?password={SECRET}&sslmode=no-such-mode-{SECRET}",
        f"postgresql://me@127.0.0.1:1/none?sslpassword={SECRET}&connect_timeout=no-number-{SECRET}",
        f"postgresql://me@127.0.0.1:1/none?password={SECRET}&no_such_option={SECRET}",
    ],
)
def test_a_password_is_in_no_message_traceback_or_log(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        store = Store(url)
        with pytest.raises(LedgerUnavailable) as failed:
            store.check()
    error: BaseException | None = failed.value
    told = [
        "".join(traceback.format_exception(failed.value)),
        caplog.text,
        repr(store),
        store.name,
        repr(store.location),
        store.location.without_secrets(
            f"{PLAIN!r}, {PLAIN}, {quote(PLAIN)} or {quote_plus(PLAIN)}"
        ),
    ]
    while error is not None:
        told += [str(error), repr(error), str(getattr(error, "orig", ""))]
        error = error.__cause__ or error.__context__
    assert not [text for text in told if "hunter2" in text]


@pytest.fixture
def guarded(postgres_url: str) -> Iterator[Ledger]:
    made = Ledger.create(postgres_url)
    assert made.verify().problems == ()
    yield made
    made.close()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("DROP TRIGGER entries_append_only ON entries", "trigger entries_append_only is missing"),
        (
            "ALTER TABLE entries DISABLE TRIGGER entries_append_only",
            "trigger entries_append_only is switched off",
        ),
        (
            (
                "CREATE OR REPLACE FUNCTION reticent_append_only() RETURNS trigger LANGUAGE "
                "plpgsql AS $$ BEGIN RETURN NULL; END $$"
            ),
            "trigger entries_append_only does something else",
        ),
        (
            "ALTER TABLE budgets DROP CONSTRAINT budgets_epsilon",
            "check budgets_epsilon of table budgets is missing",
        ),
        (
            "CREATE RULE quiet AS ON UPDATE TO budgets DO INSTEAD NOTHING",
            "rule quiet of table budgets is not part of a ledger",
        ),
        ("ALTER TABLE entries ADD COLUMN note text", "column entries.note is not part of a ledger"),
    ],
)
def test_guards_that_are_off_are_found_on_a_server(
    guarded: Ledger, change: str, expected: str
) -> None:
    with guarded.store.write() as connection:
        connection.exec_driver_sql(change)
    assert any(expected in problem for problem in guarded.verify().problems), (
        guarded.verify().problems
    )
