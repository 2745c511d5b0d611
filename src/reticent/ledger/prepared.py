"""Statements that every charge makes: compiled once, and handed to the database's driver as text.

SQLAlchemy compiles, binds and wraps a statement anew each time, which takes ten times as long as
SQLite takes to answer it. What is written here is still SQLAlchemy Core, for both databases.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

Parameters = Mapping[str, Any]


class Prepared:
    """A statement with named parameters, for every kind of database that it meets.

    Values go to the driver and come from it as they are: whole numbers, texts and bytes.

    Args:
        statement: a select, insert, update or delete; lists of values in it have a fixed length.
        columns: of an insert, the columns that are given.

    Example:
        >>> number = Prepared(sa.select((sa.bindparam("n") + 1).label("next")))
        >>> engine = sa.create_engine("sqlite://")
        >>> with engine.connect() as connection:
        ...     number.rows(connection, {"n": 1})[0].next
        2
        >>> engine.dispose()
    """

    def __init__(
        self,
        statement: sa.Select[Any] | sa.Insert | sa.Update | sa.Delete,
        *,
        columns: Sequence[str] | None = None,
    ) -> None:
        self._statement, self._columns = statement, columns
        self._compiled: dict[str, tuple[str, Parameters, Sequence[str] | None]] = {}
        self._row: Callable[[Iterable[Any]], Any] = tuple
        if isinstance(statement, sa.Select):
            named: Any = namedtuple  # its names are known when it runs
            self._row = named("Row", [column.name for column in statement.selected_columns])._make

    def rows(self, connection: Connection, parameters: Parameters) -> list[Any]:
        """All rows of a select, each with its columns as attributes."""
        cursor = self._execute(connection, parameters)
        try:
            return list(map(self._row, cursor.fetchall()))
        finally:
            cursor.close()

    def first(self, connection: Connection, parameters: Parameters) -> Any:
        """The first row of a select, or None."""
        cursor = self._execute(connection, parameters)
        try:
            row = cursor.fetchone()
        finally:
            cursor.close()
        return None if row is None else self._row(row)

    def run(self, connection: Connection, parameters: Parameters) -> int:
        """How many rows an insert, update or delete has changed."""
        cursor = self._execute(connection, parameters)
        try:
            return int(cursor.rowcount)
        finally:
            cursor.close()

    def run_each(self, connection: Connection, parameters: Sequence[Parameters]) -> None:
        """Executes an insert, update or delete for each of ``parameters``."""
        if len(parameters) == 1:
            self.run(connection, parameters[0])
            return
        text, values = self._bound(connection, parameters)
        cursor = connection.connection.cursor()
        try:
            cursor.executemany(text, values)
        finally:
            cursor.close()

    def _execute(self, connection: Connection, parameters: Parameters) -> Any:
        text, values = self._bound(connection, (parameters,))
        cursor = connection.connection.cursor()
        try:
            cursor.execute(text, values[0])
        except BaseException:
            cursor.close()
            raise
        return cursor

    def _bound(
        self, connection: Connection, parameters: Sequence[Parameters]
    ) -> tuple[str, list[Any]]:
        """The statement as the driver takes it, and the values of each of ``parameters``."""
        dialect = connection.dialect
        found = self._compiled.get(dialect.name)
        if found is None:
            compiled: Any = self._statement.compile(
                dialect=dialect,
                column_keys=None if self._columns is None else list(self._columns),
                compile_kwargs={"render_postcompile": True},
            )
            order = compiled.positiontup if compiled.positional else None
            values = {
                name: bound.value for name, bound in compiled.binds.items() if not bound.required
            }
            found = self._compiled[dialect.name] = (compiled.string, values, order)
        text, fixed, order = found
        whole = [{**fixed, **one} for one in parameters]
        if order is None:
            return text, list(whole)
        return text, [[one[name] for name in order] for one in whole]
