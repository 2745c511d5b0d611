"""Statements of a ledger, on both of its databases.

What every charge does is SQL that goes to the driver as it stands. SQLAlchemy compiles, binds and
wraps a statement anew each time, which takes ten times as long as SQLite takes to answer it. It
makes the connections, and does what is rare.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Generic, NamedTuple, TypeVar

import sqlalchemy as sa
from sqlalchemy import Table
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.engine import Connection, Engine

from reticent.core.extras import require

R = TypeVar("R")
Values = tuple[Any, ...]

AT_ONCE = 900
"""Parameters in one query; SQLite before 3.32 takes 999."""

FEW = 8
"""Rows for which a statement each costs less than one that SQLAlchemy makes for all of them."""

_IN_AN_ARRAY = 50_000
"""Values in one query where they are one parameter."""


_NO_ROW = "22012"
"""SQLSTATE of a division by zero."""


class _Sent(NamedTuple):
    """A statement for a server."""

    text: str
    values: Values
    otherwise: Callable[[], Exception] | None = None  # what a division by zero in it says


class _Pipeline:
    """Statements to a PostgreSQL server, many in one message, each prepared once.

    The driver's own cursors send each statement by itself, also within a pipeline, and look twice
    for answers in between. That takes three times the processor time.

    Args:
        driver: the driver's connection, which must prepare nothing by itself. What it had prepared
            it would remove after a rollback, and what is prepared here with it.
    """

    def __init__(self, driver: Any) -> None:
        self._psycopg = require("psycopg", extra="postgres")
        self._driver = driver
        self._adapt = self._psycopg.adapt.Transformer(driver)
        self._prepared: dict[str, bytes] = {}
        self._numbers = count()

    def send(self, statements: Sequence[_Sent]) -> list[Values]:
        """Return all rows that the last of these statements gives.

        Raises:
            psycopg.Error: of the first that failed. Those behind it were not executed.
            Exception: what it has as ``otherwise``.
        """
        server, known = self._driver.pgconn, self._prepared
        as_text = self._psycopg.adapt.PyFormat.TEXT
        made: dict[str, tuple[bytes, int]] = {}  # with the place of the result
        # Before anything leaves: no limit bounds how long a server waits for the rest of a message.
        written = [
            self._adapt.dump_sequence(one.values, [as_text] * len(one.values)) for one in statements
        ]
        server.enter_pipeline_mode()  # what fails in it by itself leaves no sound connection
        for at, (one, values) in enumerate(zip(statements, written, strict=True)):
            text = one.text
            name = known.get(text)
            if name is None and text not in made:
                made[text] = f"reticent_{next(self._numbers)}".encode(), at + len(made)
                server.send_prepare(made[text][0], text.encode())
            server.send_query_prepared(name or made[text][0], values, None, _BINARY)
        server.pipeline_sync()
        results = self._driver.wait(self._results(len(made) + len(statements)))
        failed = self._first_failed(results)
        # What was prepared before a failure stays so, and would be prepared again each time.
        known.update((text, name) for text, (name, at) in made.items() if at < failed)
        if results[-1].status == self._psycopg.pq.ExecStatus.PIPELINE_SYNC:
            server.exit_pipeline_mode()
        if failed < len(results):
            error = self._psycopg.errors.error_from_result(results[failed])
            if error.sqlstate == _NO_ROW:
                at = failed - sum(place < failed for _, place in made.values())
                if (otherwise := statements[at].otherwise) is not None:
                    raise otherwise() from error
            raise error
        last = results[-2]  # before the mark of the end
        self._adapt.set_pgresult(last)
        rows: list[Values] = self._adapt.load_rows(0, last.ntuples, tuple)
        return rows

    def _results(self, number: int) -> Generator[Any, Any, list[Any]]:
        """Wait, as the driver asks for it, for the results of so many calls and the end of them."""
        server, generators = self._driver.pgconn, self._psycopg.generators
        yield from generators.send(server)
        results: list[Any] = []
        try:
            for _ in range(number + 1):
                results += yield from generators.fetch_many(server)
        except self._psycopg.OperationalError:  # a server says before why it ends the connection
            if self._first_failed(results) == len(results):
                raise
        return results

    def _first_failed(self, results: Sequence[Any]) -> int:
        """Return the place of the first result that is a failure, or their number."""
        fatal = self._psycopg.pq.ExecStatus.FATAL_ERROR
        return next((at for at, one in enumerate(results) if one.status == fatal), len(results))


_BINARY = 1
"""Form in which results come, which is the shortest for digests."""


class Session(Connection):
    """A connection of SQLAlchemy, with its driver's own beside it.

    A server is far away. What changes rows there waits until something is read, or until the
    transaction ends, and goes along with it.

    Attributes:
        driver: the driver's connection, which begins no transaction by itself.
        is_sqlite: whether it leads to an SQLite file.
    """

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.is_sqlite = engine.dialect.name == "sqlite"
        self.driver: Any = self.connection.driver_connection
        if self.is_sqlite:
            self._cursor = self.connection.cursor()
        else:
            self._pipeline = _Pipeline(self.driver)
        self._waiting: list[_Sent] = []

    def answer(self, text: str, values: Values) -> list[Values]:
        """Return all rows that a statement gives, which sees all that was run before."""
        if self.is_sqlite:
            return self._cursor.execute(text, values).fetchall()  # type: ignore[no-any-return]
        return self._send(text, values)

    def run(
        self,
        text: str,
        each: Sequence[Values],
        otherwise: Callable[[], Exception] | None = None,
    ) -> None:
        """Execute a statement for each of ``each``.

        Args:
            text: the statement.
            each: values of its parameters.
            otherwise: maker of the error that says that one of them did not change one row, or on a
                server did not find one, or None where any number will do.
        """
        if not self.is_sqlite:
            self._waiting.extend(_Sent(text, values, otherwise) for values in each)
            return
        if len(each) == 1:
            self._cursor.execute(text, each[0])
        else:
            self._cursor.executemany(text, each)
        if otherwise is not None and self._cursor.rowcount != len(each):
            raise otherwise()

    def flush(self) -> None:
        """Send what waits."""
        if self._waiting:
            self._send()

    def finish(self) -> None:
        """Commit what was run."""
        if self.is_sqlite:
            self.driver.execute("COMMIT")
        else:
            self._send("COMMIT")
        self.undo()

    def undo(self) -> None:
        """Undo what was run and not committed. Nothing is left of a transaction."""
        self._waiting.clear()
        if self.in_transaction():  # SQLAlchemy was asked for something in it
            self.rollback()
        self.driver.rollback()

    def _send(self, text: str = "", values: Values = ()) -> list[Values]:
        """Return the rows of a statement, sent together with what waits before it."""
        statements, self._waiting = self._waiting, []
        if text:
            statements.append(_Sent(text, values))
        return self._pipeline.send(statements)


def flush_before(connection: Connection, *_: Any) -> None:
    """Send what waits before SQLAlchemy's own statements: a listener."""
    if isinstance(connection, Session):
        connection.flush()


class Statement(Generic[R]):
    """SQL that both databases understand, with "?" for each value.

    Values go to the driver and come from it as they are: whole numbers, texts, bytes and None.
    SQLite lets anything stand anywhere, so whoever reads looks at what came.

    Args:
        sql: the statement.
        row: function that makes a row of the values of its columns.

    Example:
        >>> engine = sa.create_engine("sqlite://")
        >>> with Session(engine) as session:
        ...     Statement("SELECT ? + 1, 'two'").rows(session, 1)
        [(2, 'two')]
        >>> engine.dispose()
    """

    def __init__(self, sql: str, row: Callable[[Iterable[Any]], R] = tuple) -> None:  # type: ignore[assignment]
        self._sqlite, self._server = sql, _numbered(sql, "$")
        returning = "" if sql.startswith("SELECT") else " RETURNING 1"
        # The server itself says so, and does nothing that was sent behind it, as a COMMIT.
        self._insisting = (
            f"WITH changed AS ({self._server}{returning}) SELECT 1 / count(*) FROM changed"
        )
        self._row = row

    def rows(self, session: Session, *values: Any) -> list[R]:
        """Return all rows of a select."""
        text = self._sqlite if session.is_sqlite else self._server
        return list(map(self._row, session.answer(text, values)))

    def run(
        self,
        session: Session,
        *each: Values,
        otherwise: Callable[[], Exception] | None = None,
    ) -> None:
        """Insert, update or delete for each of ``each``, as ``Session.run`` says."""
        if session.is_sqlite:
            session.run(self._sqlite, each, otherwise)
        else:
            session.run(self._insisting if otherwise else self._server, each, otherwise)


def _numbered(sql: str, mark: str) -> str:
    """Return a statement with ``mark`` and 1, 2, 3, ... in the place of each "?"."""
    numbers = count(1)
    return re.sub(r"\?", lambda _: f"{mark}{next(numbers)}", sql)


def named(columns: Iterable[Any]) -> str:
    """Return the names of columns as a select or an insert lists them."""
    return ", ".join(getattr(column, "name", column) for column in columns)


def inserting(table: Table) -> Statement[Any]:
    """Return the statement that adds a row with all columns of a table, in their order."""
    marks = ", ".join("?" * len(table.c))
    return Statement(f"INSERT INTO {table.name} ({named(table.c)}) VALUES ({marks})")


def raw(column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """Return a column as the database gives it.

    SQLite lets anything stand anywhere, and a number would be taken for a length.
    """
    return sa.type_coerce(column, sa.types.NullType()).label(column.name)


class Change:
    """An update of rows by their ids, each by amounts of its own.

    People mostly have one row, or two, or three. Rows that change by the same amounts are one
    statement.

    Args:
        table: a table with a column ``id``.
        values: the new value of each column, as SQL with "?" for each amount.
    """

    def __init__(self, table: Table, values: str) -> None:
        update = f"UPDATE {table.name} SET {values} WHERE id"
        self._one: Statement[Any] = Statement(f"{update} = ?")
        marked = _numbered(update, ":amount_")
        self._many = sa.text(f"{marked} IN :ids").bindparams(sa.bindparam("ids", expanding=True))

    def run(self, session: Session, amounts: Iterable[tuple[int, Values]]) -> None:
        """Change each row, given by its id, by its amounts."""
        alike: defaultdict[Values, list[int]] = defaultdict(list)
        for number, amount in amounts:
            alike[amount].append(number)
        for amount, ids in alike.items():
            if len(ids) <= FEW:
                self._one.run(session, *[(*amount, number) for number in ids])
                continue
            named = {f"amount_{at}": value for at, value in enumerate(amount, 1)}
            for start in range(0, len(ids), AT_ONCE):
                session.execute(self._many, {**named, "ids": ids[start : start + AT_ONCE]})


def among(
    connection: Connection, column: sa.ColumnElement[str], values: list[str]
) -> sa.ColumnElement[bool]:
    """Return the condition that the column is one of many values.

    PostgreSQL compares a row with all of them by one hash, but only in a plan that was made for
    these values. It makes one each time, since the driver prepares nothing.
    """
    if connection.dialect.name == "postgresql":
        return column == sa.any_(sa.literal(values, ARRAY(sa.Text)))
    return column.in_(values)


def within(
    connection: Connection, table: Table, fixed: Mapping[str, str], free: str, values: list[str]
) -> list[sa.ColumnElement[bool]]:
    """Return the conditions of the rows that have the ``fixed`` names and one of ``values``."""
    return [
        *(table.c[name] == value for name, value in fixed.items()),
        among(connection, table.c[free], values),
    ]


def batches(
    connection: Connection, keys: Sequence[tuple[str, ...]], names: Sequence[str]
) -> Iterator[tuple[dict[str, str], str, list[str]]]:
    """Group different keys that agree in all names but one.

    Each group is what they agree in, the name that is left, and its values. The rows of one table
    mostly share client and bundle, so that thousands of keys are a few batches.
    """
    free = max(range(len(names)), key=lambda at: len({key[at] for key in keys}))
    groups: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for key in keys:
        groups[key[:free] + key[free + 1 :]].append(key[free])
    step = _IN_AN_ARRAY if connection.dialect.name == "postgresql" else AT_ONCE
    others = [*names[:free], *names[free + 1 :]]
    for agreed, values in groups.items():
        for start in range(0, len(values), step):
            yield dict(zip(others, agreed, strict=True)), names[free], values[start : start + step]
