"""The input of a check: an estimator that is not fitted, and tiny data to fit it on."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from reticent.audit.records import Records
from reticent.core.guarantees import Adjacency, Guarantee, Neighborhood, Replace
from reticent.core.scopes import Scope
from reticent.ledger import Ledger
from reticent.release.fits import not_counted

Rows = npt.NDArray[Any]

SCOPE = Scope(principal="checks", subject="checked")
DATA_SET = "checked"
WITHHELD = "withheld"
"""The name of a withheld answer in a law."""


class CheckFailed(AssertionError):
    """A system that breaks the contract. The message names the check and what was found."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A system under test.

    A system is one of three kinds, which the checks find out. A *model* is paid for in ``fit`` and
    has ``receipt_``. An *answerer* protects its records and is paid for by ``release``. An *input
    system* protects the rows that it is asked about.

    Attributes:
        estimator: the estimator, not fitted. Its parameter ``data_set``, where it has one, is set
            by the checks.
        X: shape (n, ...), the rows that ``fit`` gets, about ten: the private records, or public
            rows of an input system.
        y: shape (n,), their labels or targets.
        fit: further arguments of ``fit``, as ``public_X``. All of them are public.
        persons: shape (n,), the person of each record, for an estimator that protects all records
            of one person together, or None where no person has two.
        queries: shape (q, ...), rows to ask about, at most as many as may be answered, or None for
            a model.
        extreme: shape (m, ...), rows that neighbours are made of: far outside of every range and
            inside, at least two. None takes them from ``X``.
        labels: the labels that such rows are given. None takes those of ``y``.
        neighbours: for an input system, shape (2, ...): two inputs that its guarantee calls
            neighbours, as far apart as it allows.
        law: function from the fitted estimator to the exact chance of each answer to the first
            query, with the noise that it charges. ``WITHHELD`` gets what is left of 1. None where a
            check of the variance of sums takes its place, or where nobody knows it.
        weaker: a statement of what this system's data sets have besides, such as "at least one
            record", or "" for a system that fits no records too.
    """

    estimator: Any
    X: Rows
    y: Rows
    fit: Mapping[str, Any] = field(default_factory=dict)
    persons: Rows | None = None
    queries: Rows | None = None
    extreme: Rows | None = None
    labels: tuple[Any, ...] | None = None
    neighbours: Rows | None = None
    law: Callable[[Any], Mapping[Any, float]] | None = None
    weaker: str = ""

    @property
    def name(self) -> str:
        """The name of the estimator's class."""
        return type(self.estimator).__name__

    @property
    def records(self) -> Records:
        """The records that ``fit`` gets."""
        return Records(self.X, self.y, self.persons)

    def fitted(self, records: Records | None = None, **more: Any) -> Any:
        """Return a fitted copy of the estimator, on other records where they are given.

        Nothing that is fitted here leaves, so fits are not counted.
        """
        if records is None and not more and self.kind == "input":
            return self._first  # fitted on public rows, and nothing is used up by asking
        return self._fitted(self.records if records is None else records, **more)

    def _fitted(self, records: Records, **more: Any) -> Any:
        made = self.fresh()
        with not_counted("a check of the estimator: nothing leaves"):
            return made.fit(records.X, records.y, **{**self.fit, **records.given, **more})

    def fresh(self) -> Any:
        """Return the estimator, not fitted, for records with a name that a ledger can book."""
        made = clone(self.estimator)
        if "data_set" in made.get_params(deep=False):
            made.set_params(data_set=DATA_SET)
        return made

    @property
    def asking(self) -> Rows:
        """The rows to ask about: the queries, or what was fitted on."""
        return np.asarray(self.X if self.queries is None else self.queries)

    @cached_property
    def _first(self) -> Any:
        return self._fitted(self.records)

    @property
    def adjacency(self) -> Adjacency:
        """Return the adjacency that the fitted system protects."""
        found: Adjacency = self._first.guarantee.adjacency
        return found

    @cached_property
    def kind(self) -> str:
        """Return "model", "answerer" or "input", as the class explains them."""
        fitted = self._first
        if hasattr(fitted, "receipt_"):
            return "model"
        adjacency = fitted.guarantee.adjacency
        of_input = isinstance(adjacency, Neighborhood) or not adjacency.data_set
        return "input" if of_input else "answerer"

    def units(self) -> list[npt.NDArray[np.int64]]:
        """Return the places of the records of each person, or of each record."""
        if self.persons is None:
            return [np.array([place]) for place in range(len(self.X))]
        return [np.flatnonzero(self.persons == one) for one in dict.fromkeys(self.persons.tolist())]

    def changed(self) -> Iterator[Records]:
        """Yield neighbours of the records, as the system's adjacency says.

        One unit is added, one removed, or one put in place of another. A unit is a record, or all
        records of a person. What is added is a row of ``extreme`` or the first query, with any
        label. An added person has such a record three times.
        """
        records, units = self.records, self.units()
        added = [self._unit(row, label) for row in self._rows() for label in self._labels()]
        if isinstance(self.adjacency, Replace):
            for places in units:
                for unit in added:
                    yield records[np.delete(np.arange(len(records)), places)] + unit
            return
        for unit in added:
            yield records + unit
        for places in units:
            yield records[np.delete(np.arange(len(records)), places)]

    def _rows(self) -> Rows:
        extreme = self.X[:2] if self.extreme is None else self.extreme
        return extreme if self.queries is None else np.concatenate([extreme, self.queries[:1]])

    def _labels(self) -> tuple[Any, ...]:
        return tuple(dict.fromkeys(self.y.tolist())) if self.labels is None else self.labels

    def _unit(self, row: Rows, label: Any) -> Records:
        times = 1 if self.persons is None else 3
        persons = None if self.persons is None else np.repeat([_new(self.persons)], times)
        labels = np.repeat(np.asarray([label], dtype=self.y.dtype), times, axis=0)
        return Records(np.repeat(row[None], times, axis=0), labels, persons)

    @contextmanager
    def ledger(self, total: Guarantee, *, times: float = 1000.0) -> Iterator[Ledger]:
        """Open a new ledger with a budget of so many times ``total`` for ``SCOPE``."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder)
            made = Ledger.create(path / "ledger.db", synchronous="NORMAL", anchor=path / "anchor")
            with closing(made) as ledger:
                ledger.grant(
                    SCOPE,
                    replace(
                        total,
                        epsilon=total.epsilon * times,
                        delta=min(total.delta * times, 0.5),
                    ),
                )
                yield ledger


def _new(persons: Rows) -> Any:
    """Return a person who is not among ``persons``."""
    if persons.dtype.kind in "iu":
        return persons.max() + 1
    return "somebody else" if persons.dtype.kind == "U" else b"somebody else"


def spent(ledger: Ledger) -> tuple[int, int, int]:
    """Return what a ledger has charged: micro-epsilon, entries that charge, and commits."""
    accounts = ledger.report().accounts
    return (
        sum(account.spent_epsilon for account in accounts),
        sum(account.reservations for account in accounts),
        sum(account.commits for account in accounts),
    )


def expect(held: bool, check: str, found: str) -> None:
    """Raise ``CheckFailed`` unless ``held``."""
    if not held:
        raise CheckFailed(f"{check}: {found}")


Run = Callable[[Case, float], None]
"""A check: raises ``CheckFailed``. The second argument is the seconds that it may take."""
