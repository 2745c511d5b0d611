"""Where a ledger lives: an SQLite file or a PostgreSQL database, its transactions, its schema, its failures in plain words."""

from __future__ import annotations

import logging
import os
import sqlite3
import uuid
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from sqlalchemy.engine import URL, Connection, Engine, make_url

from reticent.accounting import schema
from reticent.accounting.chain import genesis
from reticent.core.checks import positive
from reticent.core.errors import InvalidInput, InvalidParameter, LedgerUnavailable, MissingExtra, UnknownName

Synchronous = Literal["FULL", "NORMAL"]

_MIGRATION_LOCK = 0x7265746963656E74  # "reticent"
_abandoned: list[Engine] = []
"""Engines inherited through a fork: an SQLite connection must be neither used nor closed in the child, so they are kept."""

logging.getLogger("alembic.runtime.plugins").setLevel(logging.WARNING)


class Store:
    """Connections to one ledger's database.

    Args:
        url: a path, or an SQLAlchemy URL of SQLite (``sqlite:///budgets.db``) or PostgreSQL (``postgresql://user@host/name``).
        synchronous: SQLite only. FULL survives a power cut; NORMAL survives every crash of a process but may lose the last
            charges, and only those, in a power cut.
        lock_timeout: seconds to wait for another writer, above 0.

    Raises:
        InvalidInput: not a URL, or a database in memory, which would forget what was spent.
        UnknownName: neither SQLite nor PostgreSQL, or an unknown ``synchronous``.
        MissingExtra: PostgreSQL without its driver.
    """

    def __init__(self, url: str | Path, *, synchronous: Synchronous = "FULL", lock_timeout: float = 60.0) -> None:
        self.url = _parse(url)
        if synchronous not in ("FULL", "NORMAL"):
            raise UnknownName(f"synchronous={synchronous!r}: expected 'FULL' or 'NORMAL'")
        self.synchronous = synchronous
        self.lock_timeout = positive(lock_timeout, name="lock_timeout")
        self._engine: Engine | None = None
        self._process = os.getpid()

    @property
    def name(self) -> str:
        """The URL without its password, for messages."""
        return self.url.render_as_string(hide_password=True)

    @property
    def is_sqlite(self) -> bool:
        """Whether the ledger is an SQLite file."""
        return self.url.get_backend_name() == "sqlite"

    def create(self) -> None:
        """Creates the schema, or brings an older one up to date; nothing happens to a ledger that is up to date."""
        if self.is_sqlite:
            path = Path(str(self.url.database))
            if not path.parent.is_dir():
                raise LedgerUnavailable(f"{self.name}: expected the folder {path.parent} to exist; make it first")
            with self._translated():
                sqlite3.connect(path).close()
        with self._translated(), self._connect().begin() as connection:
            if not self.is_sqlite:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
            config = _alembic()
            config.attributes["connection"] = connection
            try:
                command.upgrade(config, "head")
            except CommandError as error:
                raise LedgerUnavailable(
                    f"{self.name}: written by a newer version of reticent; upgrade reticent ({error})"
                ) from error
            if connection.execute(sa.select(schema.head.c.id)).first() is None:
                ledger = str(uuid.uuid4())
                connection.execute(schema.head.insert().values(id=1, ledger=ledger, seq=0, digest=genesis(ledger)))

    def check(self) -> None:
        """Refuses a database that holds no ledger, or one of another schema version.

        Raises:
            LedgerUnavailable: with what to do about it.
        """
        with self.read() as connection:
            found = MigrationContext.configure(connection).get_current_revision()
        expected = ScriptDirectory.from_config(_alembic()).get_current_head()
        if found is None:
            raise LedgerUnavailable(f"{self.name}: no ledger here; create one with `reticent ledger init`")
        if found != expected:
            raise LedgerUnavailable(
                f"{self.name}: schema version {found}, expected {expected}; "
                "run `reticent ledger init` with the newest reticent to upgrade it"
            )

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One transaction that no other writer can interleave with; durable once the block ends, undone if it raises."""
        with self._translated(), self._connect().begin() as connection:
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One consistent snapshot."""
        with self._translated(), self._connect().connect() as connection:
            if self.is_sqlite:
                connection = connection.execution_options(reticent_read=True)
            else:
                connection = connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            with connection.begin():
                yield connection

    def close(self) -> None:
        """Closes idle connections."""
        if self._engine is not None:
            _dispose(self._engine, self._process)

    def _connect(self) -> Engine:
        if self._engine is not None and self._process != os.getpid():
            _abandoned.append(self._engine)
            self._engine = None
        if self._engine is None:
            self._process = os.getpid()
            self._engine = self._sqlite() if self.is_sqlite else self._postgresql()
            weakref.finalize(self, _dispose, self._engine, self._process)
        return self._engine

    def _sqlite(self) -> Engine:
        file = f"file:{quote(str(self.url.database))}"
        # mode=rw: opening a ledger that is not there must fail, not make an empty one.
        engine = sa.create_engine(
            URL.create("sqlite", database=file, query={"mode": "rw", "uri": "true"}),
            connect_args={"timeout": self.lock_timeout},
        )

        pragmas = ("journal_mode=WAL", f"synchronous={self.synchronous}", "foreign_keys=ON")

        def prepare(connection: Any, _: Any) -> None:
            connection.isolation_level = None  # transactions are begun below, not by the driver
            for pragma in pragmas:
                connection.execute(f"PRAGMA {pragma}")

        def begin(connection: Connection) -> None:
            reading = connection.get_execution_options().get("reticent_read", False)
            connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")

        sa.event.listen(engine, "connect", prepare)
        sa.event.listen(engine, "begin", begin)
        return engine

    def _postgresql(self) -> Engine:
        if find_spec("psycopg") is None:
            raise MissingExtra('a PostgreSQL ledger needs the extra "postgres": pip install "reticent[postgres]"')
        milliseconds = int(self.lock_timeout * 1000)
        # Whatever the server's default, an answer leaves only after its charge is on disk.
        options = f"-c lock_timeout={milliseconds} -c synchronous_commit=on"
        return sa.create_engine(
            self.url.set(drivername="postgresql+psycopg"),
            connect_args={"options": options, "connect_timeout": 10, "client_encoding": "utf8"},
            pool_pre_ping=True,
        )

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (sa.exc.DBAPIError, sa.exc.TimeoutError, sqlite3.Error) as error:
            raise LedgerUnavailable(f"{self.name}: {self._reason(error)}; nothing is released") from error

    def _reason(self, error: Exception) -> str:
        text = " ".join(str(getattr(error, "orig", None) or error).split())
        advice = next((advice for sign, advice in _REASONS if sign in text.lower()), "the database reported a fault")
        return f"{advice.format(seconds=self.lock_timeout)} [{text}]"


_REASONS: tuple[tuple[str, str], ...] = (
    ("locked", "another process held the ledger for more than {seconds:g} s; try again, or raise lock_timeout"),
    ("lock timeout", "another process held the ledger for more than {seconds:g} s; try again, or raise lock_timeout"),
    ("readonly", "the ledger is read-only for this user; give it write permission on the file and its folder"),
    ("read-only", "the ledger is read-only for this user; give it write permission on the file and its folder"),
    ("full", "no space is left for the ledger; free some, the ledger itself is intact"),
    ("disk i/o", "the ledger's disk refused a write (no space, a quota, or a fault); the ledger itself is intact"),
    ("unable to open", "no ledger here, or no permission to open it; create one with `reticent ledger init`"),
    ("no such table", "no ledger here; create one with `reticent ledger init`"),
    ("does not exist", "no ledger here; create one with `reticent ledger init`"),
    ("not a database", "the file is not an SQLite database"),
    ("malformed", "the file is damaged; restore it from a backup"),
)


def _parse(url: str | Path) -> URL:
    text = str(url)
    if "://" not in text:
        if text == ":memory:" or not text:
            raise InvalidInput(f"ledger={text!r}: expected a file or URL; a ledger in memory would forget what was spent")
        return URL.create("sqlite", database=str(Path(text).absolute()))
    try:
        parsed = make_url(text)
    except (sa.exc.ArgumentError, ValueError) as error:
        raise InvalidInput(
            "ledger: expected a path or a URL such as sqlite:///budgets.db or postgresql://user@host/name"
        ) from error
    if parsed.get_backend_name() not in ("sqlite", "postgresql"):
        raise UnknownName(f"ledger: expected sqlite or postgresql, got {parsed.get_backend_name()!r}")
    if parsed.get_backend_name() == "sqlite":
        if parsed.database in (None, "", ":memory:"):
            raise InvalidInput(f"ledger={text!r}: expected a file; a ledger in memory would forget what was spent")
        if parsed.query or str(parsed.database).startswith("file:"):
            raise InvalidParameter(f"ledger={text!r}: expected sqlite:///path without options")
        return URL.create("sqlite", database=str(Path(str(parsed.database)).absolute()))
    return parsed


def _dispose(engine: Engine, process: int) -> None:
    """Closes an engine's connections, in the process that made them."""
    if process == os.getpid():
        engine.dispose()


def _alembic() -> Config:
    config = Config()
    config.set_main_option("script_location", "reticent.accounting:migrations")
    config.set_main_option("path_separator", "os")
    return config
