"""The database of a ledger: an SQLite file or a PostgreSQL database, its transactions, its schema,
its failures in plain words.
"""

from __future__ import annotations

import logging
import math
import os
import select
import sqlite3
import time
import uuid
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Literal, TypeVar
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine

from reticent.core.checks import positive
from reticent.core.errors import InvalidParameter, LedgerUnavailable, ReticentError, UnknownName
from reticent.core.extras import require
from reticent.ledger import schema
from reticent.ledger.chain import AnchorFile, EndMoved, anchor_file, first_link, genesis
from reticent.ledger.location import FileIdentity, Location, checked_file, several_names
from reticent.ledger.statements import Session, flush_before
from reticent.ledger.tree import EMPTY

Synchronous = Literal["FULL", "NORMAL"]
T = TypeVar("T")

_MIGRATION_LOCK = 0x7265746963656E74  # "reticent"
_LONGEST_WAIT = 86_400.0
_LONGEST_STATEMENT = 300_000
"""Milliseconds that one statement of a write may take on a server, waiting not counted."""

_ATTEMPTS = 10
"""Times that a transaction is begun which the server itself undid."""

_UNDONE = ("40001", "40P01")
"""SQLSTATE of serialization failures and deadlocks: the server has undone the transaction, and
says so.
"""

_MOST_CONNECTIONS = 15
"""Connections of one store and process that are used at once; others wait."""

_abandoned: list[list[Session]] = []
"""Connections inherited through a fork: one of SQLite must be neither used nor closed in the child,
so they are kept.
"""


class Store:
    """Connections to one ledger's database.

    Attributes:
        is_sqlite: whether the ledger is an SQLite file.

    Args:
        url: a path, or an SQLAlchemy URL of SQLite (``sqlite:///budgets.db``) or PostgreSQL
            (``postgresql://user@host/name``). The option ``anchor=FOLDER`` of a URL stands for the
            argument.
        synchronous: level of durability, for SQLite only. FULL survives a power cut. NORMAL
            survives every crash of a process but may lose the last charges, and only those, in a
            power cut. Then the ledger is refused as older than its anchor.
        lock_timeout: seconds to wait for another writer, above 0, at most a day.
        anchor: a folder, or a file that ends in ".anchor", where the ledger's last position is
            kept, as ``chain`` explains. None takes the URL's, else the environment variable
            ``RETICENT_ANCHOR``, else the user's state folder.

    Raises:
        InvalidInput: not a URL, or a database in memory, which would forget what was spent.
        UnknownName: neither SQLite nor PostgreSQL, or an unknown ``synchronous``.
        MissingExtra: PostgreSQL without its driver.
    """

    def __init__(
        self,
        url: str | Path,
        *,
        synchronous: Synchronous = "FULL",
        lock_timeout: float = 60.0,
        anchor: str | Path | None = None,
    ) -> None:
        self.location = Location.of(url)
        self.is_sqlite = self.location.is_sqlite
        if synchronous not in ("FULL", "NORMAL"):
            raise UnknownName(f"synchronous={synchronous!r}: expected 'FULL' or 'NORMAL'")
        self.synchronous = synchronous
        self.lock_timeout = positive(lock_timeout, name="lock_timeout")
        if self.lock_timeout > _LONGEST_WAIT:
            raise InvalidParameter(
                f"lock_timeout={lock_timeout!r}: expected at most {_LONGEST_WAIT:g} seconds"
            )
        self._patience = _milliseconds(self.lock_timeout)
        self._anchor = self.location.anchor or None if anchor is None else anchor
        self._anchors: dict[str, AnchorFile] = {}
        self._path = str(self.location.path) if self.is_sqlite else ""
        self._engine: Engine | None = None
        self._idle: list[Session] = []
        self._turns = _turns()
        self._identity: FileIdentity | None = None
        self._process = os.getpid()

    @property
    def url(self) -> URL:
        """The place of the database, for SQLAlchemy."""
        return self.location.url

    @property
    def name(self) -> str:
        """The URL without its secrets, for messages."""
        return self.location.name

    def anchor_of(self, ledger: str) -> AnchorFile:
        """Return the file that keeps the anchor of the ledger that this database holds.

        Raises:
            InvalidInput: it would stand in the database's own folder.
        """
        if ledger not in self._anchors:
            self._anchors[ledger] = anchor_file(
                ledger,
                chosen=self._anchor,
                database=self.location.path if self.is_sqlite else None,
                durable=not self.is_sqlite or self.synchronous == "FULL",
                patience=self.lock_timeout,
            )
        return self._anchors[ledger]

    def no_ledger(self) -> LedgerUnavailable:
        """Return the refusal of a database that holds no ledger."""
        return LedgerUnavailable(
            f"{self.name}: no ledger here; create one with `reticent ledger init`"
        )

    def create(self, *, required: str) -> None:
        """Make a ledger, where there is none.

        Args:
            required: first policy of a new ledger, as ``Policy.text``.

        Raises:
            LedgerUnavailable: it cannot be reached or written, or is of another version.
        """
        if self.is_sqlite:
            self._create_file()
        self.retried(lambda: self._create_schema(required))

    def _create_file(self) -> None:
        path = self.location.path
        if not path.parent.is_dir():
            raise LedgerUnavailable(
                f"{self.name}: expected the folder {path.parent} to exist; make it first"
            )
        if not os.path.lexists(path):
            # Only where nothing is: closing a second descriptor of a ledger drops SQLite's locks on
            # it in this process.
            try:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
            except FileExistsError:
                pass  # somebody else creates the same ledger now
            except OSError as error:
                raise LedgerUnavailable(
                    f"{self.name}: could not be made ({error.strerror}); nothing is released"
                ) from error

    def _create_schema(self, required: str) -> None:
        with self.write() as connection:
            if not self.is_sqlite:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
            found = schema.version(connection)
            if found is None:
                schema.make_tables(connection)
            if found != schema.VERSION:
                self._migrate(connection, found)
            if connection.execute(sa.select(schema.head.c.id)).first() is None:
                ledger = str(uuid.uuid4())
                policy = {"first_required": required, "required": required}
                row = {
                    "id": 1,
                    "ledger": ledger,
                    "seq": 0,
                    "digest": genesis(ledger, required),
                    "link": first_link(ledger, required),
                    "root": EMPTY,
                    **policy,
                }
                connection.execute(schema.head.insert().values(row))

    def _migrate(self, connection: Connection, found: str | None) -> None:
        from alembic import command  # slow, and an open ledger does without
        from alembic.config import Config
        from alembic.util.exc import CommandError

        logging.getLogger("alembic.runtime.plugins").setLevel(logging.WARNING)
        config = Config()
        config.set_main_option("script_location", "reticent.ledger:migrations")
        config.set_main_option("path_separator", "os")
        config.attributes["connection"] = connection
        try:
            (command.stamp if found is None else command.upgrade)(config, "head")
        except CommandError as error:
            raise self._of_another_version(str(found)) from error

    def check(self) -> None:
        """Refuse a database that holds no ledger, or one of another schema version.

        Raises:
            LedgerUnavailable: it is such a database. The message says what to do about it.
        """
        with self.read() as connection:
            found = schema.version(connection)
        if found is None:
            raise self.no_ledger()
        if found != schema.VERSION:
            raise self._of_another_version(found)

    def _of_another_version(self, found: str) -> LedgerUnavailable:
        return LedgerUnavailable(
            f"{self.name}: schema version {found!r:.40} is of another version of reticent, which "
            "alone can open it; nothing is released"
        )

    def retried(self, work: Callable[[], T]) -> T:
        """Return the result of ``work``, begun again where the server undid its transaction by
        itself.

        A failure that leaves open whether the transaction took place, as a connection that breaks
        while it is committed, is never retried.

        Raises:
            LedgerUnavailable: the server undid it time after time, or failed in another way.
        """
        for _ in range(_ATTEMPTS - 1):
            try:
                return work()
            except LedgerUnavailable as error:
                origin = getattr(error.__cause__, "orig", error.__cause__)
                if getattr(origin, "sqlstate", None) not in _UNDONE:
                    raise
        return work()

    def write(self) -> AbstractContextManager[Session]:
        """Open one transaction that no other writer can interleave with.

        On a server, writers take turns once they lock the head. It is durable once the block ends,
        and undone if the block raises.

        Raises:
            LedgerUnavailable: the ledger could not be written, or the path of an SQLite ledger
                leads elsewhere, before the block or after it.
        """
        return self._connected(to_write=True)

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Open one consistent snapshot.

        Raises:
            LedgerUnavailable: the ledger cannot be read.
        """
        with self._connected() as session:
            if not self.is_sqlite:
                session.run("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY", [()])
                session.run("SET LOCAL statement_timeout = 0", [()])
                yield session
                session.undo()
                return
            with self._waiting(session):
                session.driver.execute("BEGIN")
                yield session
                session.undo()

    def check_file(self) -> None:
        """Refuse an SQLite ledger whose path has come to lead elsewhere, or whose file has another
        name.

        It takes one system call.

        Raises:
            LedgerUnavailable: it is such a ledger. The message says what to do about it.
        """
        if self._identity is None:
            return
        path = self._path
        try:
            status = os.lstat(path)
        except OSError as error:
            raise LedgerUnavailable(
                f"{path}: no ledger here any more ({error.strerror}); nothing is released"
            ) from None
        if (status.st_dev, status.st_ino) != self._identity:
            raise LedgerUnavailable(
                f"{path}: another file was put in the ledger's place while it was open; open it "
                "again"
            )
        if status.st_nlink > 1:
            raise several_names(Path(path), Path(path), status.st_nlink)

    def checkpoint(self) -> None:
        """Move what SQLite's log holds into the file, and empty the log. A server needs nothing.

        Raises:
            LedgerUnavailable: it could not be written, or somebody reads an older state of it.
        """
        if not self.is_sqlite:
            return
        with self._connected() as session, self._waiting(session):
            busy, *_ = session.driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise LedgerUnavailable(
                f"{self.name}: others read or wrote it for {self.lock_timeout:g} s, and its log "
                "still holds what was removed; repeat this once they are done"
            )

    @contextmanager
    def _waiting(self, session: Session) -> Iterator[None]:
        """Let SQLite itself wait for others."""
        session.driver.execute(f"PRAGMA busy_timeout = {self._patience}")
        try:
            yield
        finally:
            session.driver.execute("PRAGMA busy_timeout = 0")

    def close(self) -> None:
        """Close idle connections."""
        _close(self._idle, self._process)
        self._engine = None

    @contextmanager
    def _connected(self, *, to_write: bool = False) -> Iterator[Session]:
        """Yield a connection of this process, outside any transaction or in one that writes.

        A failure while it is used is said in plain words.
        """
        if self._engine is None or self._process != os.getpid():
            self._start()
        turns, idle, session = self._turns, self._idle, None
        try:
            turns.get(timeout=self.lock_timeout)
        except Empty:
            raise LedgerUnavailable(
                f"{self.name}: this process kept all its {_MOST_CONNECTIONS} connections busy for "
                f"{self.lock_timeout:g} s; try again; nothing is released"
            ) from None
        try:
            session = self._open()
            if to_write and self.is_sqlite:
                _begin_writing(session.driver, self._patience)
                self.check_file()
            elif to_write:
                session.run("BEGIN", [()])
            yield session
            if to_write:
                session.finish()
                self.check_file()
            idle.append(session)
        except BaseException as error:
            if session is not None:
                self._return(session, idle, sound=isinstance(error, ReticentError | EndMoved))
            if not isinstance(error, self._failures):
                raise
            self._hide_secrets(error)
            raise LedgerUnavailable(
                f"{self.name}: {self._reason(error)}; nothing is released"
            ) from error
        finally:
            turns.put(None)

    def _return(self, session: Session, idle: list[Session], *, sound: bool) -> None:
        """Undo what was begun, and keep the connection where it is sound."""
        try:
            session.undo()
        except self._failures:
            sound = False
        if sound:
            idle.append(session)
        else:
            _close([session], self._process)

    def _open(self) -> Session:
        while self._idle:
            session = self._idle.pop()
            if self.is_sqlite or _is_alive(session):
                return session
            _close([session], self._process)
        assert self._engine is not None
        return Session(self._engine)

    def _start(self) -> None:
        """Make the engine of this process."""
        if self._process != os.getpid():
            _abandoned.append(self._idle)
        self._engine = None  # and it stays so where the file is refused
        self._process = os.getpid()
        self._idle = []
        self._turns = _turns()
        self._engine = self._sqlite() if self.is_sqlite else self._postgresql()
        sa.event.listen(self._engine, "before_cursor_execute", flush_before)
        weakref.finalize(self, _close, self._idle, self._process)

    def _sqlite(self) -> Engine:
        path = self.location.path
        self._identity = checked_file(path)
        # mode=rw: opening a ledger that is not there must fail, not make an empty one.
        engine = sa.create_engine(
            URL.create(
                "sqlite", database=f"file:{quote(str(path))}", query={"mode": "rw", "uri": "true"}
            ),
            connect_args={"timeout": self.lock_timeout, "check_same_thread": False},
            poolclass=sa.NullPool,
        )

        pragmas = ("journal_mode=WAL", f"synchronous={self.synchronous}", "foreign_keys=ON")

        def prepare(connection: Any, _: Any) -> None:
            connection.isolation_level = None  # the driver begins no transactions
            for pragma in pragmas:
                connection.execute(f"PRAGMA {pragma}")
            connection.execute("PRAGMA busy_timeout = 0")  # ``_begin_writing`` waits itself
            self.check_file()

        sa.event.listen(engine, "connect", prepare)
        return engine

    def _postgresql(self) -> Engine:
        require("psycopg", extra="postgres")
        given = {name: value for name, value in self.url.query.items() if name == "options"}
        # A client that is stopped or cut off while it holds the lock is thrown out, before those
        # who wait for it give up, unless it stops while its bytes leave. Writers take turns by a
        # lock on one row, which needs no more than READ COMMITTED, whatever the server's default;
        # and whatever its default, an answer leaves only after its charge is on disk.
        idle = max(self._patience // 2, 1000)
        settings = (
            *given.values(),
            f"-c lock_timeout={self._patience}",
            f"-c statement_timeout={self._patience + _LONGEST_STATEMENT}",
            f"-c idle_in_transaction_session_timeout={idle}",
            "-c default_transaction_isolation=read\\ committed",
            "-c synchronous_commit=on",
        )
        silence = {  # seconds until a connection that says nothing is given up
            "keepalives": 1,
            "keepalives_idle": 30,
            "keepalives_interval": 10,
            "keepalives_count": 3,
            "tcp_user_timeout": 60_000,
        }
        return sa.create_engine(
            self.url.set(drivername="postgresql+psycopg").difference_update_query(given),
            connect_args={
                **silence,
                **self.location.secrets,
                "options": " ".join(map(str, settings)),
                "connect_timeout": 10,
                "client_encoding": "utf8",
                "prepare_threshold": None,  # a ``Session`` prepares what is sent often
            },
            isolation_level="AUTOCOMMIT",  # transactions begin where the store says so
            poolclass=sa.NullPool,
        )

    @property
    def _failures(self) -> tuple[type[Exception], ...]:
        """Turn a database's failure, of SQLAlchemy or of its driver, into the error to raise."""
        driver: Any = None if self._engine is None else self._engine.dialect.dbapi
        own = sqlite3.Error if driver is None else driver.Error
        return (sa.exc.DBAPIError, sa.exc.TimeoutError, sqlite3.Error, UnicodeDecodeError, own)

    def _reason(self, error: Exception) -> str:
        text = " ".join(str(getattr(error, "orig", None) or error).split())
        return f"{_REASONS[fault_of(error)].format(seconds=self.lock_timeout)} [{text}]"

    def _hide_secrets(self, error: BaseException | None) -> None:
        """Take secrets out of what an error, and those that it came from, would print in a
        traceback.
        """
        seen: set[int] = set()
        while error is not None and id(error) not in seen:
            seen.add(id(error))
            self._hide_secrets_of(error)
            origin = getattr(error, "orig", None)
            if origin is not None:
                self._hide_secrets_of(origin)
            error = error.__cause__ or error.__context__

    def _hide_secrets_of(self, error: BaseException) -> None:
        error.args = tuple(
            self.location.without_secrets(part) if isinstance(part, str) else part
            for part in error.args
        )


def _turns() -> SimpleQueue[None]:
    """Return one turn for each connection. A semaphore takes five times as long."""
    turns: SimpleQueue[None] = SimpleQueue()
    for _ in range(_MOST_CONNECTIONS):
        turns.put(None)
    return turns


def _begin_writing(connection: Any, patience: int) -> None:
    """Begin a transaction of SQLite that writes, once no other one is under way.

    SQLite itself looks again after pauses that grow to a tenth of a second, in which the writers of
    other processes go on and on. Here it looks every millisecond.

    Raises:
        sqlite3.OperationalError: others were writing for ``patience`` milliseconds.
    """
    latest = 0.0
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            # Also while another process takes over the log of one that was killed.
            busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            latest = latest or time.monotonic() + patience / 1000
            if not busy or time.monotonic() > latest:
                raise
            time.sleep(0.001)
        else:
            return


def _is_alive(session: Session) -> bool:
    """Return whether the server has not ended an idle connection: the end of it is there to read.

    It takes one system call, where asking the server takes a round trip.
    """
    ready = select.poll()
    ready.register(session.driver.fileno(), select.POLLIN)
    return not ready.poll(0)


Fault = Literal[
    "held", "cut off", "slow", "read-only", "full", "disk", "closed", "server", "tables", "foreign",
    "damaged", "other",
]  # fmt: skip
"""Kinds of failures of a database, as far as they are told apart."""

_REASONS: dict[Fault, str] = {
    "held": "another process held the ledger for more than {seconds:g} s; try again, or raise "
    "lock_timeout",
    "cut off": "this process kept the ledger from others for too long, and was cut off; try again",
    "slow": "the database took too long; try again",
    "read-only": "the ledger is read-only for this user; give it write permission on the file and "
    "its folder",
    "full": "no space is left for the ledger; free some, the ledger itself is intact",
    "disk": "the ledger's disk refused a write (no space, a quota, or a fault); the ledger itself "
    "is intact",
    "closed": "no ledger here, or no permission to open it; create one with `reticent ledger init`",
    "server": "the server cannot be reached, refuses the connection, or has ended it",
    "tables": "no ledger here, or one whose tables were changed; create one with `reticent ledger "
    "init`, or see `reticent ledger verify`",
    "foreign": "the file is not an SQLite database",
    "damaged": "the file is damaged; `reticent ledger restore` puts a backup in its place and says "
    "what it lost",
    "other": "the database reported a fault",
}

_SQLITE_FAULTS: dict[int, Fault] = {
    sqlite3.SQLITE_ERROR: "tables",  # a table or a column is missing: our statements are right
    sqlite3.SQLITE_BUSY: "held",
    sqlite3.SQLITE_LOCKED: "held",
    sqlite3.SQLITE_READONLY: "read-only",
    sqlite3.SQLITE_FULL: "full",
    sqlite3.SQLITE_IOERR: "disk",
    sqlite3.SQLITE_CANTOPEN: "closed",
    sqlite3.SQLITE_NOTADB: "foreign",
    sqlite3.SQLITE_CORRUPT: "damaged",
}
"""By the primary result code, the last byte of ``sqlite_errorcode``."""

_POSTGRESQL_FAULTS: dict[str | None, Fault] = {
    None: "server",  # the connection failed
    "55P03": "held",  # lock_not_available
    "25P03": "cut off",  # idle_in_transaction_session_timeout
    "57014": "slow",  # query_canceled
    "57P01": "server",  # admin_shutdown
    "25006": "read-only",  # read_only_sql_transaction
    "42501": "read-only",  # insufficient_privilege
    "53100": "full",  # disk_full
    "58030": "disk",  # io_error
    "3D000": "server",  # invalid_catalog_name: there is no such database
    "28000": "server",  # invalid_authorization_specification
    "28P01": "server",  # invalid_password
    "42P01": "tables",  # undefined_table
    "42703": "tables",  # undefined_column
    "XX001": "damaged",  # data_corrupted
    "XX002": "damaged",  # index_corrupted
}
"""By the SQLSTATE."""


def fault_of(error: BaseException | None) -> Fault:
    """Say what failed, by the code that the database gave, never by the words of its message.

    Those hold names that anybody may choose.
    """
    origin = getattr(error, "orig", None) or error
    if isinstance(origin, UnicodeDecodeError):
        return "damaged"
    if isinstance(origin, sqlite3.Error):
        code = getattr(origin, "sqlite_errorcode", None)
        if code is not None:
            return _SQLITE_FAULTS.get(code & 0xFF, "other")
        # The driver itself says so of a text that is no UTF-8.
        return "damaged" if isinstance(origin, sqlite3.OperationalError) else "other"
    return _POSTGRESQL_FAULTS.get(getattr(origin, "sqlstate", ""), "other")


def _milliseconds(seconds: float) -> int:
    """Return whole milliseconds, never 0, which means to wait for ever to a server."""
    return max(1, math.ceil(seconds * 1000))


def _close(sessions: list[Session], process: int) -> None:
    """Close connections, in the process that made them."""
    while process == os.getpid() and sessions:
        with suppress(Exception):  # of a connection that has ended already
            sessions.pop().close()
