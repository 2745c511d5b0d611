"""The database of a shuffler or an aggregator: what it still holds of each round."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from typing_extensions import override

from reticent.core.errors import UnknownName
from reticent.ledger.statements import Session
from reticent.ledger.store import Store

BATCH = 1000
"""Reports of one forwarded batch."""

OPEN, CLOSED, DONE, VOID = "open", "closed", "done", "void"
"""States of a round: reports are taken; all are there; all have left; too few have come."""

_tables = sa.MetaData()

rounds = sa.Table(
    "fleet_rounds",
    _tables,
    sa.Column("round", sa.LargeBinary(32), primary_key=True),
    sa.Column("state", sa.String(8), nullable=False),
    sa.Column("reports", sa.Integer, nullable=False),
    sa.Column("kept", sa.LargeBinary, nullable=False),
)
"""Rounds, with how many reports were taken, and a signed statement or a result in the end."""

reports = sa.Table(
    "fleet_reports",
    _tables,
    sa.Column("round", sa.LargeBinary(32), primary_key=True),
    sa.Column("token", sa.LargeBinary(16), primary_key=True),
    sa.Column("sealed", sa.LargeBinary, nullable=False),
    sqlite_with_rowid=False,  # stored by token, and never in the order in which they came
)

batches = sa.Table(
    "fleet_batches",
    _tables,
    sa.Column("round", sa.LargeBinary(32), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("content", sa.LargeBinary, nullable=False),
)
"""Permuted reports, which wait to be forwarded or to be counted."""


class Posts(Store):
    """Connections to one such database: an SQLite file, or PostgreSQL.

    What is deleted from an SQLite file is overwritten.
    """

    @override
    def _create_schema(self, required: str) -> None:
        with self.write() as connection:
            _tables.create_all(connection)

    @contextmanager
    @override
    def write(self) -> Iterator[Session]:
        with super().write() as connection:
            if self.is_sqlite:
                connection.exec_driver_sql("PRAGMA secure_delete=ON")
            yield connection

    def begin(self, round_: bytes) -> None:
        """Make the database, and the row of a round that is new to it."""
        self.create(required="")
        with self.write() as connection:
            found = connection.execute(sa.select(rounds.c.state).where(rounds.c.round == round_))
            if found.first() is None:
                row = {"round": round_, "state": OPEN, "reports": 0, "kept": b""}
                connection.execute(rounds.insert().values(row))

    @staticmethod
    def state(connection: Session, round_: bytes) -> tuple[str, int, bytes]:
        """Return a round's state, the number of its reports and what is kept.

        Raises:
            UnknownName: the database does not hold the round.
        """
        query = sa.select(rounds.c.state, rounds.c.reports, rounds.c.kept)
        found = connection.execute(query.where(rounds.c.round == round_)).first()
        if found is None:
            raise UnknownName("database: does not hold this round")
        return found[0], found[1], found[2]

    @staticmethod
    def change(connection: Session, round_: bytes, **values: object) -> None:
        """Set columns of a round's row."""
        connection.execute(rounds.update().where(rounds.c.round == round_).values(**values))
