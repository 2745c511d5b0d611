"""The private records of an individual-budget classifier: they come, go and come back.

Each unit keeps one number for good.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from secrets import token_bytes
from typing import Any

import numpy as np

from reticent.accounting import IndividualFilter
from reticent.core.arrays import Integers
from reticent.core.errors import InvalidInput
from reticent.neighbours.exhaustive import Exhaustive
from reticent.neighbours.integer_points import Points
from reticent.neighbours.records import key_bytes


class HeldRecords:
    """Records with a place in an ``IndividualFilter`` each: a person's where there are persons.

    **Guarantee.** For each query at most one record of a unit is near it, its nearest, and which
    one depends on the unit's own records alone. A unit's number in the filter outlives ``forget``:
    taken in again, it goes on spending from where it was.

    Args:
        filter: the filter whose numbers are handed out.
        dimension: number of coordinates of a point.
        by_person: whether units are named.

    What stays of a forgotten unit is its number, its spending and a keyed digest of its name. The
    digest's own key is drawn anew for every object.
    """

    def __init__(self, filter: IndividualFilter, *, dimension: int, by_person: bool) -> None:
        self.filter, self.by_person = filter, by_person
        self.labels: Integers = np.zeros(0, dtype=np.int64)
        self.numbers: Integers = np.zeros(0, dtype=np.int64)
        self._known: dict[bytes, int] = {}
        self._secret = token_bytes(32)
        self._search = Exhaustive(dimension, room=0)

    @property
    def points(self) -> Points:
        """The points of the records that are held, shape (n, d)."""
        return self._search.points

    def __len__(self) -> int:
        return len(self.labels)

    def insert(
        self, blocks: Iterable[Points], labels: Integers, persons: Sequence[Any] | None
    ) -> None:
        """Take records in.

        Args:
            blocks: points of n records in all, each of shape (rows, d), from the public grid.
            labels: shape (n,), codes.
            persons: one name per record, or None where every record is a unit of its own, which
                nobody can name later.

        Raises:
            InvalidInput: persons where there were none, or none where there were some.
        """
        if (persons is not None) != self.by_person:
            raise InvalidInput("persons: expected one for each record in every call, or in none")
        search = Exhaustive(self._search.dimension, room=len(self) + len(labels))
        search.add(self.points)
        for points in blocks:
            search.add(points)
        if persons is None:
            numbers = self.filter.more(len(labels))
        else:
            digests = [self._digest(person) for person in persons]
            new = [name for name in dict.fromkeys(digests) if name not in self._known]
            self._known.update(zip(new, self.filter.more(len(new)).tolist(), strict=True))
            numbers = np.array([self._known[name] for name in digests], dtype=np.int64)
        self._search = search
        self.labels = np.concatenate([self.labels, labels])
        self.numbers = np.concatenate([self.numbers, numbers])

    def forget(self, person: Any) -> int:
        """Remove all records of one unit, at once. Its spending stays.

        Returns:
            The number of its records. Private.

        Raises:
            InvalidInput: there are no persons.
        """
        if not self.by_person:
            raise InvalidInput(
                "person: expected a classifier that was fitted with persons; without them no "
                "record has "
                "a name to be forgotten by"
            )
        number = self._known.get(self._digest(person), -1)
        gone = self.numbers == number
        if gone.any():
            self._search = Exhaustive.of(self.points[~gone])
            self.labels, self.numbers = self.labels[~gone], self.numbers[~gone]
        return int(gone.sum())

    def beside(self, filter: IndividualFilter) -> HeldRecords:
        """Return the same records under the same names and numbers, in a copy of their filter."""
        twin = copy(self)
        twin.filter, twin._known = filter, dict(self._known)
        return twin

    def anew(self, filter: IndividualFilter) -> HeldRecords:
        """Return the same records, none of which has spent anything, in another filter."""
        twin = HeldRecords(filter, dimension=self._search.dimension, by_person=self.by_person)
        twin.labels, twin._search = self.labels, self._search
        names, numbers = np.unique(self.numbers, return_inverse=True)
        twin.numbers = filter.more(len(names))[numbers]
        return twin

    def near(
        self, queries: Points, limits: Integers
    ) -> Iterator[tuple[Integers, Integers, Integers]]:
        """Yield for each query in turn the units with a record nearer than its limit.

        They are numbers, squared distances and labels of their nearest records.

        Args:
            queries: shape (b, d), integer points.
            limits: shape (b,), squared distances in grid steps.
        """
        for places, squared in self._search.within(queries, limits):
            numbers, labels = self.numbers[places], self.labels[places]
            if self.by_person:
                order = np.lexsort((labels, squared, numbers))
                numbers = numbers[order]
                first = np.ones(len(order), dtype=np.bool_)
                first[1:] = numbers[1:] != numbers[:-1]
                chosen = order[first]
                numbers, squared, labels = numbers[first], squared[chosen], labels[chosen]
            yield numbers, squared, labels

    def _digest(self, person: Any) -> bytes:
        return hashlib.blake2b(key_bytes(person), key=self._secret, digest_size=32).digest()
