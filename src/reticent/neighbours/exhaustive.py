"""All records up to some distance of each query, unsorted, by one matrix product."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt

from reticent.neighbours.integer_points import Points, ShortPoints

Places = npt.NDArray[np.int64]
Found = list[tuple[Points, Places]]

_SAMPLE = 4096
"""Most records whose distances suggest the distance to search up to."""

_TABLE_ROWS = 2**16
"""Number of records of a shard whose distances are held at once."""

_KEPT = 2
"""Candidates are cut back once there are this many times as many as are asked for."""

_AT_ONCE = 1024
"""Number of records that are copied at once, which stay in the cache."""

_ROWS = 32
"""Number of queries per product."""

_SPARE = 1.1
"""Factor by which the suggestion aims deeper, since it comes from a sample."""


class Candidates(Protocol):
    """Records, and a way to find those near queries."""

    dimension: int

    def add(self, points: ShortPoints) -> None:
        """Take in integer points, shape (n, d), after those that are held."""

    def nearest(self, queries: Points, depth: int) -> Found:
        """Return for each query the squared distances and places of at least ``depth`` records,
        *all* up to some distance. A place is a number in the order in which records were added.

        Args:
            queries: shape (b, d), integer points.
            depth: 1 to the number of records.
        """


class Exhaustive:
    """Squared distances to all records by one matrix product per block, exact in float32.

    Records are stored as rows (-2 y, |y|^2, 1) and multiplied with (x, 1, |x|^2), which gives a sum
    of integers whose partial sums stay within 2^24 (``PointGrid``). A few thousand records suggest
    a distance. One comparison then finds all records within it.

    Args:
        points: shape (n, d), integer points.
        room: number of records that there is room for, with those that are added later. None: n.
    """

    def __init__(self, points: Points | ShortPoints, *, room: int | None = None) -> None:
        records, self.dimension = points.shape
        size = records if room is None else room
        self._room = np.empty((size, self.dimension + 2), dtype=np.float32)
        self._rows = self._room[:0]
        self.add(points)

    @property
    def points(self) -> Points:
        """The records, shape (n, d)."""
        return self._rows[:, :-2] * np.float32(-0.5)

    def add(self, points: Points | ShortPoints) -> None:
        """Take in records, as ``Candidates``."""
        for start in range(0, len(points), _AT_ONCE):
            some = points[start : start + _AT_ONCE].astype(np.float32, copy=False)
            held = len(self._rows)
            self._rows = self._room[: held + len(some)]
            new = self._rows[held:]
            np.multiply(some, -2, out=new[:, :-2])
            # Integers up to 2^22, whose sums of any order are exact.
            np.einsum("ij,ij->i", some, some, out=new[:, -2])
            new[:, -1] = 1.0

    def nearest(self, queries: Points, depth: int) -> Found:
        """Return candidates, as ``Candidates``."""
        found: Found = []
        for distances in self._products(queries):
            found += [self._nearest(row, depth) for row in distances]
        return found

    def within(self, queries: Points, limits: Places) -> Iterator[tuple[Places, Places]]:
        """Yield for each query in turn the places and squared distances, int64, of all records
        nearer than its limit.

        Args:
            queries: shape (b, d), integer points.
            limits: shape (b,), squared distances.
        """
        first = 0
        for distances in self._products(queries):
            for row, limit in zip(distances, limits[first : first + len(distances)], strict=True):
                places = np.flatnonzero(row < limit)
                yield places, row[places].astype(np.int64)
            first += len(distances)

    def ranked(self, queries: Points, ranks: tuple[int, ...]) -> Places:
        """Return the squared distances, int64, of the records at the given ranks of nearness.

        Args:
            queries: shape (b, d), integer points.
            ranks: each 1 to the number of records.

        Returns:
            Shape (b, len(ranks)).
        """
        places = [rank - 1 for rank in ranks]
        found = np.empty((len(queries), len(places)), dtype=np.int64)
        first = 0
        for distances in self._products(queries):
            found[first : first + len(distances)] = np.partition(distances, places, axis=1)[
                :, places
            ]
            first += len(distances)
        return found

    def _products(self, queries: Points) -> Iterator[Points]:
        """Yield squared distances to all records in blocks of shape (at most 32, n), each valid
        until the next.
        """
        squares = (
            (queries * queries).sum(axis=1, keepdims=True, dtype=np.float64).astype(np.float32)
        )
        rows = np.concatenate([queries, np.ones_like(squares), squares], axis=1)
        # One block stays in the cache and is written over, since fresh memory would cost more than
        # the products.
        block = np.empty((min(_ROWS, len(rows)), len(self._rows)), dtype=np.float32)
        for start in range(0, len(rows), _ROWS):
            part = rows[start : start + _ROWS]
            # bit-exact: whole numbers whose sums float32 holds (``POINT_RADIUS``), in any order.
            yield np.matmul(part, self._rows.T, out=block[: len(part)])

    def _nearest(self, distances: Points, depth: int) -> tuple[Points, Places]:
        records = len(distances)
        if depth < records:
            sample = distances[:: -(-records // _SAMPLE)]  # records may come in any order
            wanted = depth
            while wanted < records:
                wanted = min(records, int(np.ceil(wanted * _SPARE)) + 1)
                at = -(-len(sample) * wanted // records)
                limit = np.partition(sample, at - 1)[at - 1]
                places = np.flatnonzero(distances <= limit)
                if len(places) >= depth:
                    return distances[places], places
        return distances.copy(), np.arange(records)


class ShortTables:
    """Records in several tables of 16 bits a number, in less memory and more time than
    ``Exhaustive``.

    Each block of records is searched up to the distance within which enough were found so far, the
    farthest of them included. That distance only falls, and no record of the final list is farther,
    so none is missed.

    Args:
        dimension: number of features.
    """

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._tables: list[ShortPoints] = []

    def add(self, points: ShortPoints) -> None:
        """Take in records, as ``Candidates``."""
        self._tables.append(points)

    def nearest(self, queries: Points, depth: int) -> Found:
        """Return candidates, as ``Candidates``."""
        limits = np.full(len(queries), np.iinfo(np.int64).max)
        kept: list[list[tuple[Places, Places]]] = [[] for _ in queries]
        waiting = np.zeros(len(queries), dtype=np.int64)
        for first, points in self._blocks():
            near = Exhaustive(points).within(queries, limits)
            for row, (found, distances) in enumerate(near):
                if not len(found):
                    continue
                kept[row].append((distances, first + found))
                waiting[row] += len(found)
                if waiting[row] >= _KEPT * depth:
                    waiting[row], limits[row] = _cut(kept[row], depth)
        return [_joined(parts) for parts in kept]

    def _blocks(self) -> Iterator[tuple[int, ShortPoints]]:
        """Yield points, and the place of the first of them."""
        first = 0
        for table in self._tables:
            for start in range(0, len(table), _TABLE_ROWS):
                yield first + start, table[start : start + _TABLE_ROWS]
            first += len(table)


def _cut(parts: list[tuple[Places, Places]], depth: int) -> tuple[int, int]:
    """Keep in ``parts`` the records no farther than the ``depth``-th nearest. Return their number,
    and the squared distance to search below from here on, which includes the farthest of them.
    """
    distances, places = (np.concatenate(column) for column in zip(*parts, strict=True))
    farthest = np.partition(distances, depth - 1)[depth - 1]
    inside = distances <= farthest
    parts[:] = [(distances[inside], places[inside])]
    return int(inside.sum()), int(farthest) + 1


def _joined(parts: list[tuple[Places, Places]]) -> tuple[Points, Places]:
    if not parts:
        return np.zeros(0, dtype=np.float32), np.zeros(0, dtype=np.int64)
    distances, places = (np.concatenate(column) for column in zip(*parts, strict=True))
    return distances.astype(np.float32), places
