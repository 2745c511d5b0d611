from __future__ import annotations

import os
import pwd
import resource
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from reticent.core import AddRemove, Guarantee, Scope
from reticent.core.errors import InvalidInput, LedgerUnavailable, UnknownName
from reticent.ledger import Ledger, schema
from reticent.ledger.store import Store, fault_of
from tests.events import make_event
from tests.together import in_forks, in_threads

ONE = Guarantee(1000.0, 1e-6, AddRemove())


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that another user may enter, unlike pytest's."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o777)
        yield Path(name)


def outcome(work: Callable[[], Any]) -> str:
    try:
        work()
    except LedgerUnavailable as error:
        return str(error)
    return "answered"


def test_a_new_ledger_is_what_the_migrations_lead_to(ledger: Ledger) -> None:
    with ledger.store.read() as connection:
        found = MigrationContext.configure(connection)
        assert compare_metadata(found, schema.metadata) == []
        assert found.get_current_heads() == ("tree",)
        assert list(schema.schema_problems(connection)) == []


def test_many_may_create_at_once(ledger_url: str) -> None:
    in_threads(*[lambda: Ledger.create(ledger_url).close()] * 6)
    assert Ledger.open(ledger_url).verify().ok


@pytest.mark.parametrize("version", ["0005", "9999"])
def test_a_ledger_of_another_version_is_refused(
    ledger: Ledger, ledger_url: str, version: str
) -> None:
    with ledger.store.write() as connection:
        connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{version}'")
    for made in (Ledger.open, Ledger.create):
        with pytest.raises(LedgerUnavailable, match=f"'{version}' is of another version"):
            made(ledger_url)
    with ledger.store.read() as connection:
        found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one()
    assert found == version


def test_what_failed_is_told_by_its_code_and_not_by_words(ledger: Ledger) -> None:
    """A table, a database or a folder may be called what it likes."""
    with (
        pytest.raises(LedgerUnavailable, match="whose tables were changed") as failed,
        ledger.store.read() as connection,
    ):
        connection.exec_driver_sql("SELECT * FROM fullerton_locked_malformed")
    assert fault_of(failed.value.__cause__) == "tables"


def test_where_there_is_no_ledger(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnavailable, match="ledger init"):
        Ledger.open(tmp_path / "missing.db")
    assert not (tmp_path / "missing.db").exists()
    with pytest.raises(LedgerUnavailable, match="expected the folder"):
        Ledger.create(tmp_path / "no" / "such" / "folder.db")
    (tmp_path / "text.db").write_text(
        "no database at all, but long enough to have a header\n" * 100
    )
    with pytest.raises(LedgerUnavailable, match="not an SQLite database"):
        Ledger.open(tmp_path / "text.db")
    sqlite3.connect(tmp_path / "empty.db").close()
    with pytest.raises(LedgerUnavailable, match="no ledger here"):
        Ledger.open(tmp_path / "empty.db")


@pytest.mark.parametrize(("synchronous", "level"), [("FULL", 2), ("NORMAL", 1)])
def test_sqlite_is_told_how_to_wait_for_the_disk(
    tmp_path: Path, synchronous: Any, level: int
) -> None:
    store = Ledger.create(tmp_path / "a.db", synchronous=synchronous).store
    with store.write() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == level
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1


@pytest.mark.postgres
def test_a_connection_that_the_server_drops_is_made_again(postgres_url: str, scope: Scope) -> None:
    ledger = Ledger.create(postgres_url)
    ledger.grant(scope, ONE)
    reservation = ledger.reserve(scope, make_event(), answers=1)
    with ledger.store._connected() as connection:
        connection.exec_driver_sql(
            """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE pid <> pg_backend_pid() AND datname = current_database()"""
        )
    reservation.commit("after the connection was lost")
    assert ledger.verify().ok
    ledger.close()


def test_a_writer_of_another_process_is_waited_for_no_longer_than_it_writes(tmp_path: Path) -> None:
    """SQLite's own pauses grow to a tenth of a second, and would miss most of a busy ledger's."""
    Ledger.create(f"sqlite:///{tmp_path / 'ledger.db'}").close()
    store = Store(tmp_path / "ledger.db", lock_timeout=30.0)
    waits = []
    for held in (0.19, 0.235, 0.24, 0.25, 0.34):
        other = sqlite3.connect(
            tmp_path / "ledger.db", isolation_level=None, check_same_thread=False
        )
        other.execute("BEGIN IMMEDIATE")
        freed: list[float] = []

        def free(other: sqlite3.Connection = other, freed: list[float] = freed) -> None:
            freed.append(time.monotonic())
            other.execute("ROLLBACK")

        timer = threading.Timer(held, free)
        timer.start()
        with store.write():
            waits.append(time.monotonic() - freed[0])
        with store.read() as connection:
            assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one() == 30_000
        timer.join()
        other.close()
    store.close()
    assert min(waits) >= 0
    assert sorted(waits)[2] < 0.03, waits


def test_a_lock_that_somebody_keeps_is_reported(ledger_url: str, scope: Scope) -> None:
    ledger = Ledger.create(ledger_url, lock_timeout=0.2)
    ledger.grant(scope, ONE)
    with ledger.store.write() as connection:
        connection.execute(sa.select(schema.head).with_for_update())
        other = Ledger.open(ledger_url, lock_timeout=0.2)
        with pytest.raises(LedgerUnavailable, match=r"held the ledger for more than 0\.2 s"):
            other.reserve(scope, make_event(), answers=1)
        other.close()
    ledger.reserve(scope, make_event(), answers=1)
    ledger.close()


def test_a_full_disk_gives_no_answer_and_leaves_the_ledger_whole(
    tmp_path: Path, scope: Scope
) -> None:
    path = tmp_path / "ledger.db"
    ledger = Ledger.create(path, synchronous="NORMAL")
    ledger.grant(scope, ONE)
    ledger.close()

    def answer_until_full() -> tuple[int, str]:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))
        mine, answered = Ledger.open(path, synchronous="NORMAL"), 0
        while True:
            try:
                with mine.reserve(scope, make_event(epsilon=0.001), answers=1) as reservation:
                    reservation.commit("receipt")
            except LedgerUnavailable as error:
                return answered, str(error)
            answered += 1

    ((answered, message),) = in_forks(answer_until_full)
    assert "the ledger itself is intact" in message
    assert "nothing is released" in message
    assert answered > 20
    after = Ledger.open(path)
    assert after.verify().ok
    (account,) = after.report().accounts
    assert account.reservations >= account.commits >= answered
    after.reserve(scope, make_event(), answers=1).commit("there is room again")
    assert after.verify().ok


def test_a_read_only_file_gives_no_answer(public_folder: Path, scope: Scope) -> None:
    path, anchor = public_folder / "ledger.db", public_folder / "anchors"
    ledger = Ledger.create(path, anchor=anchor)
    ledger.grant(scope, ONE)
    ledger.close()
    path.chmod(0o444)
    anchor.chmod(0o777)
    for file in anchor.iterdir():
        file.chmod(0o666)

    def answer() -> str:
        if os.getuid() == 0:  # root may write to everything
            os.setgid(pwd.getpwnam("nobody").pw_gid)
            os.setuid(pwd.getpwnam("nobody").pw_uid)
        return outcome(
            lambda: Ledger.open(path, anchor=anchor).reserve(scope, make_event(), answers=1)
        )

    (message,) = in_forks(answer)
    assert "read-only for this user" in message
    assert "nothing is released" in message
    path.chmod(0o644)
    assert Ledger.open(path, anchor=anchor).report().accounts == ()


def test_a_log_that_another_process_takes_over_is_waited_for(tmp_path: Path) -> None:
    """After a kill the next process reads the log again, and says so with a code of its own."""
    ledger = Ledger.create(tmp_path / "ledger.db", lock_timeout=30.0)
    taking_over = """
import fcntl, os, sys, time
index = os.open(sys.argv[1], os.O_RDWR)
fcntl.lockf(index, fcntl.LOCK_EX, 3, 120)  # to write, to move the log, to read it again
os.pwrite(index, bytes(96), 0)
print("taken", flush=True)
time.sleep(0.5)
"""
    command = [sys.executable, "-c", taking_over, str(tmp_path / "ledger.db-shm")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "taken\n"
        started = time.monotonic()
        with ledger.store.write():
            assert time.monotonic() - started > 0.3
    assert ledger.verify().ok
    ledger.close()


@pytest.mark.parametrize("url", [":memory:", "", "sqlite://", "sqlite:///:memory:"])
def test_a_ledger_that_would_forget_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="forget"):
        Store(url)


def test_urls_of_no_ledger_are_refused() -> None:
    for url in ("sqlite:///a.db?mode=memory", "sqlite:///file:a.db", "postgresql://h:port/name"):
        with pytest.raises(InvalidInput, match="ledger"):
            Store(url)
    with pytest.raises(UnknownName, match="ledger"):
        Store("mysql://host/name")
