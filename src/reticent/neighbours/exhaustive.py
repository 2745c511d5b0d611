"""All records up to some distance of each query, unsorted, by matrix products."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Integers
from reticent.neighbours.integer_points import Points

Floats = npt.NDArray[np.float32]
Near = tuple[Integers, Integers]
"""Places, and squared distances, of the records near a query, rising by place."""

_SAMPLE = 4096
"""Most records whose distances suggest the distance to search up to."""

_SPARE = 1.1
"""Factor by which the suggestion aims deeper, since it comes from a sample."""

_RECORDS = 2**13
"""Number of records of a product. As numbers of 32 bits they stay in the cache."""

_QUERIES = (8, 32)
"""Least and largest number of queries per product."""

_DISTANCES = 2**26
"""Number of distances that are held at once, where those of the least number of queries are fewer.
"""

_DIGIT = 2**12
"""A squared norm is at most 2^22, and held as two digits of 16 bits."""


class Exhaustive:
    """Squared distances to all records, by products of blocks, exact in float32.

    A record y is stored in 16 bits a number, as (y, h, l) with |y|^2 = 4096 h + l. Its product with
    (-2 x, 4096, 1) is |y|^2 - 2 x.y, a sum of integers whose partial sums stay within 2^24
    (``PointGrid``). A few thousand records suggest a distance. One comparison then finds all
    records within it.

    Args:
        dimension: number of features.
        room: number of records that there is room for.
    """

    def __init__(self, dimension: int, *, room: int) -> None:
        self.dimension = dimension
        self._room = np.empty((room, dimension + 2), dtype=np.int16)
        self._rows = self._room[:0]

    @classmethod
    def of(cls, points: Points) -> Exhaustive:
        """Return the search of integer points, shape (n, d)."""
        found = cls(points.shape[1], room=len(points))
        found.add(points)
        return found

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def points(self) -> Points:
        """The records, shape (n, d)."""
        return self._rows[:, :-2]

    def add(self, points: Points) -> None:
        """Take in integer points, shape (n, d), after those that are held, if there is room."""
        for start in range(0, len(points), _RECORDS):
            some = points[start : start + _RECORDS]
            held = len(self._rows)
            self._rows = self._room[: held + len(some)]
            new = self._rows[held:]
            new[:, :-2] = some
            squares = np.einsum("ij,ij->i", some, some, dtype=np.int32)
            new[:, -2], new[:, -1] = np.divmod(squares, _DIGIT)

    def nearest(self, queries: Points, depth: int) -> Iterator[Near]:
        """Yield for each query in turn at least ``depth`` records, *all* up to some distance.

        Args:
            queries: shape (b, d), integer points.
            depth: 1 to the number of records.
        """
        for distances, square in self._distances(queries):
            places = self._nearest(distances, depth)
            yield places, distances[places].astype(np.int64) + square

    def within(self, queries: Points, limits: Integers) -> Iterator[Near]:
        """Yield for each query in turn all records nearer than its limit.

        Args:
            queries: shape (b, d), integer points.
            limits: shape (b,), squared distances.
        """
        for (distances, square), limit in zip(self._distances(queries), limits, strict=True):
            # A limit beyond 2^24 is beyond every distance after rounding, too.
            places = np.flatnonzero(distances < np.float32(limit - square))
            yield places, distances[places].astype(np.int64) + square

    def ranked(self, queries: Points, ranks: tuple[int, ...]) -> Integers:
        """Return the squared distances of the records at the given ranks of nearness.

        Args:
            queries: shape (b, d), integer points.
            ranks: each 1 to the number of records.

        Returns:
            Shape (b, len(ranks)), int64.
        """
        found = np.empty((len(queries), len(ranks)), dtype=np.int64)
        places = [rank - 1 for rank in ranks]
        for row, (_, squared) in enumerate(self.nearest(queries, max(ranks))):
            found[row] = np.partition(squared, places)[places]
        return found

    def _distances(self, queries: Points) -> Iterator[tuple[Floats, int]]:
        """Yield for each query in turn its squared distances to all records, less its own square,
        and that square. They are valid until the next.
        """
        squares = np.einsum("ij,ij->i", queries, queries, dtype=np.int64).tolist()
        left = np.empty((len(queries), self.dimension + 2), dtype=np.float32)
        np.multiply(queries, -2, out=left[:, :-2], dtype=np.float32)
        left[:, -2:] = _DIGIT, 1
        at_once = int(np.clip(_DISTANCES // max(1, len(self)), *_QUERIES))
        # One block of each kind is written over, since fresh memory would cost more than the
        # products.
        found = np.empty((min(at_once, len(left)), len(self)), dtype=np.float32)
        right = np.empty((min(_RECORDS, len(self)), left.shape[1]), dtype=np.float32)
        for start in range(0, len(left), at_once):
            part = left[start : start + at_once]
            for first in range(0, len(self), _RECORDS):
                rows = self._rows[first : first + _RECORDS]
                right[: len(rows)] = rows
                # bit-exact: whole numbers whose sums float32 holds (``POINT_RADIUS``), in any
                # order.
                into = found[: len(part), first : first + len(rows)]
                np.matmul(part, right[: len(rows)].T, out=into)
            yield from zip(found[: len(part)], squares[start : start + at_once], strict=True)

    def _nearest(self, distances: Floats, depth: int) -> Integers:
        """Return the places of at least ``depth`` records, all up to some distance."""
        records, wanted = len(distances), depth
        sample = distances[:: -(-records // _SAMPLE)]  # records may come in any order
        while wanted < records:
            wanted = min(records, int(np.ceil(wanted * _SPARE)) + 1)
            at = -(-len(sample) * wanted // records)
            places = np.flatnonzero(distances <= np.partition(sample, at - 1)[at - 1])
            if len(places) >= depth:
                return places
        return np.arange(records)
