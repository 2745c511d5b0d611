"""How much of a prepaid plan is used, counted in the ledger: in one place, whatever processes and copies there are of the plan.

A plan is charged once, as a whole (``Ledger.reserve``); which of its queries were asked is a count and no cost, so it stands in a
table of its own beside the entries. It goes up, durably, before anything is computed. The hash chain does not cover it: what it
guards against is copies and crashes, not somebody who writes into the database.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from reticent.core.checks import count
from reticent.core.errors import BudgetExceeded, InvalidInput, LedgerUnavailable
from reticent.ledger import schema
from reticent.ledger.ledger import Ledger

_LONGEST_NAME = 64

plan_counts = sa.Table(
    "plan_counts",
    schema.metadata,
    sa.Column("name", sa.String(_LONGEST_NAME), primary_key=True),
    sa.Column("booked", sa.String(200), nullable=False),
    sa.Column("queries", sa.BigInteger, nullable=False),
    sa.Column("answers", sa.BigInteger, nullable=False),
    sa.Column("asked", sa.BigInteger, nullable=False),
    sa.Column("answered", sa.BigInteger, nullable=False),
    sa.CheckConstraint("asked BETWEEN 0 AND queries", name="plan_counts_asked"),
    sa.CheckConstraint("answered BETWEEN 0 AND answers", name="plan_counts_answered"),
)
"""One row for each prepaid plan; migration 0003 makes it."""


@dataclass
class PlanCounter:
    """The durable count of one prepaid plan.

    **Guarantee.** Over all processes and copies that count by it, at most ``queries`` queries are asked and at most ``answers``
    answers given, through crashes: both counts go up before anything is computed.

    Attributes:
        ledger: where it is counted.
        name: of the plan.
        booked: the ledger's reservation that paid for the plan.
        queries, answers: at most.
        asked, answered: as of the last look.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ledger = Ledger.create(f"{folder}/budgets.db")
        ...     counter = PlanCounter.open(ledger, "plan-7", booked="1a2b3c4d/7", queries=10, answers=4)
        ...     granted = counter.take(6)  # six queries may give out four answers
        ...     counter.settle(unused=3)
        ...     again = PlanCounter.find(ledger, "plan-7")
        ...     ledger.close()
        >>> granted, again.asked, again.answered, again.remaining
        (4, 6, 1, 4)
    """

    ledger: Ledger
    name: str
    booked: str
    queries: int
    answers: int
    asked: int = 0
    answered: int = 0

    @classmethod
    def open(cls, ledger: Ledger, name: str, *, booked: str, queries: int, answers: int) -> Self:
        """The count called ``name``: the one that is there, with its own numbers, or a new one.

        Raises:
            InvalidInput, InvalidParameter: a name of no or more than 64 characters, or limits below 1.
            LedgerUnavailable: could not be written.
        """
        if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME:
            raise InvalidInput(f"name: expected 1 to {_LONGEST_NAME} characters, got {type(name).__name__}")
        limits = {"queries": count(queries, name="queries"), "answers": count(answers, name="answers")}
        with ledger.store.write() as connection:
            _lock(connection, ledger)
            row = _row(connection, name)
            if row is None:
                connection.execute(plan_counts.insert().values(name=name, booked=booked, asked=0, answered=0, **limits))
                row = _row(connection, name)
        assert row is not None
        return cls(ledger, **row)

    @classmethod
    def find(cls, ledger: Ledger, name: str) -> Self | None:
        """The count called ``name``, or None.

        Raises:
            LedgerUnavailable: cannot be read.
        """
        with ledger.store.read() as connection:
            row = _row(connection, name)
        return None if row is None else cls(ledger, **row)

    @property
    def remaining(self) -> int:
        """Queries that could still be asked at the last look; 0 once all answers are given out."""
        return self.queries - self.asked if self.answered < self.answers else 0

    def take(self, queries: int) -> int:
        """Counts ``queries`` queries as asked, and as many answers as they may give out; durable once it returns.

        Returns:
            How many answers these queries may give out: as many as there are queries, or what is left. ``settle`` gives back
            those that were not used.

        Raises:
            BudgetExceeded: more than are left; nothing was counted.
            LedgerUnavailable: could not be written; nothing may be released.
        """
        with self.ledger.store.write() as connection:
            self._look(connection)
            if queries > self.remaining:
                raise BudgetExceeded(
                    f"queries: requested {queries}, {self.asked} of {self.queries} asked and {self.answered} of {self.answers} "
                    f"labels given out or being computed; at most {self.remaining} more may be asked under this plan"
                )
            granted = min(queries, self.answers - self.answered)
            self._write(connection, asked=self.asked + queries, answered=self.answered + granted)
        return granted

    def settle(self, *, unused: int) -> None:
        """Gives back answers that ``take`` granted and that were not given out.

        Raises:
            LedgerUnavailable: could not be written; they stay counted.
        """
        if unused:
            with self.ledger.store.write() as connection:
                self._look(connection)
                self._write(connection, asked=self.asked, answered=self.answered - unused)

    def _look(self, connection: Connection) -> None:
        _lock(connection, self.ledger)
        row = _row(connection, self.name)
        if row is None:
            raise LedgerUnavailable(f"{self.ledger.store.name}: has no count of plan {self.name!r}; use the one that was charged")
        self.asked, self.answered = row["asked"], row["answered"]

    def _write(self, connection: Connection, *, asked: int, answered: int) -> None:
        where = plan_counts.c.name == self.name
        connection.execute(plan_counts.update().where(where).values(asked=asked, answered=answered))
        self.asked, self.answered = asked, answered


def _lock(connection: Connection, ledger: Ledger) -> None:
    """Keeps other writers waiting, as every writer of a ledger does: by its head."""
    if connection.execute(sa.select(schema.head.c.id).with_for_update()).first() is None:
        raise LedgerUnavailable(f"{ledger.store.name}: no ledger here; create one with `reticent ledger init`")


def _row(connection: Connection, name: str) -> dict[str, Any] | None:
    found = connection.execute(sa.select(plan_counts).where(plan_counts.c.name == name)).mappings().first()
    return None if found is None else dict(found)
