"""Ledgers on SQLite and on a PostgreSQL server of our own."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from reticent.core import AddRemove, Guarantee, Receipt, Scope
from reticent.ledger import Ledger, Reservation


def _postgres_programs() -> Path | None:
    """Folder with initdb and pg_ctl: Debian keeps them out of PATH."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next(
        (
            folder
            for folder in folders
            if (folder / "initdb").exists() and (folder / "pg_ctl").exists()
        ),
        None,
    )


def _ordinary_user() -> str | None:
    """Somebody else to run the server, which refuses to run as root; None when we are ordinary
    ourselves.
    """
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in names), None)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """URL of a server of our own: no port, a socket in a folder that goes away again."""
    pytest.importorskip("psycopg", reason='no PostgreSQL driver: pip install "reticent[postgres]"')
    programs = _postgres_programs()
    if programs is None:
        pytest.skip("no PostgreSQL server here: install Debian's package postgresql")
    user = _ordinary_user()
    if os.getuid() == 0 and user is None:
        pytest.skip(
            "PostgreSQL refuses to run as root, and there is no user postgres or nobody to run "
            "it as"
        )
    with tempfile.TemporaryDirectory(
        prefix="pg", dir="/tmp"
    ) as name:  # short: a socket's path has 107 bytes
        folder = Path(name)
        if user is not None:
            shutil.chown(folder, user)

        def run(program: str, *arguments: str) -> None:
            command = [str(programs / program), "-D", str(folder / "data"), *arguments]
            done = subprocess.run(
                command,
                user=user,
                cwd=folder,
                env={"PATH": os.defpath, "LC_ALL": "C"},
                capture_output=True,
                check=False,
            )
            if done.returncode != 0:
                pytest.skip(
                    f"PostgreSQL could not be started: {program}: {done.stderr.decode()[-300:]}"
                )

        run("initdb", "-E", "UTF8", "-A", "trust", "-U", "reticent", "--no-sync")
        # Tests kill clients, never the server or the machine, so the server need not wait for the
        # disk.
        options = f"-k {folder} -c listen_addresses='' -c fsync=off -c max_connections=60"
        run("pg_ctl", "-w", "-l", str(folder / "log"), "-o", options, "start")
        try:
            yield f"postgresql+psycopg://reticent@/postgres?host={folder}"
        finally:
            run("pg_ctl", "-w", "-m", "immediate", "stop")


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """URL of an empty database: one for all tests, emptied before each, because a database is
    three hundred files.
    """
    engine = sa.create_engine(postgres_server, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as connection:
        connection.exec_driver_sql(
            """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"""
        )
        connection.exec_driver_sql("DROP SCHEMA public CASCADE")
        connection.exec_driver_sql("CREATE SCHEMA public")
    return postgres_server


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of a ledger that is not made yet, once on SQLite and once on PostgreSQL."""
    if request.param == "postgres":
        url: str = request.getfixturevalue("postgres_url")
        return url
    return f"sqlite:///{tmp_path / 'ledger.db'}"


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    """An empty ledger that waits for no disk, and whose requests may name what they like."""
    made = Ledger.create(ledger_url, required=(), synchronous="NORMAL", lock_timeout=60.0)
    yield made
    made.close()


@pytest.fixture
def scope() -> Scope:
    return Scope(principal="acme", subject="ward-7")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger's file in a folder of its own, with a budget of epsilon 1 for ward-7."""
    (tmp_path / "data").mkdir()
    made = Ledger.create(tmp_path / "data" / "ledger.db", synchronous="NORMAL")
    made.grant(Scope(subject="ward-7"), Guarantee(1.0, 1e-6, AddRemove()))
    made.close()
    return tmp_path / "data" / "ledger.db"


def receipt_for(reservation: Reservation, guarantee: Guarantee, answers: int = 1) -> Receipt:
    """The receipt of the answers that a reservation paid for."""
    return Receipt(
        *("test", guarantee, answers, "", "none", "test"),
        seeded=False,
        booked=reservation.id,
        position=reservation.position,
        digest=reservation.digest,
    )
