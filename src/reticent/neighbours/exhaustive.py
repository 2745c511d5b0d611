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
"""Number of records whose distances suggest the distance to search up to."""

_AT_ONCE = 1024
"""Number of records that are copied at once, which stay in the cache."""

_ROWS = 32
"""Number of queries per product."""

_SPARE = 1.1
"""Factor by which the suggestion aims deeper, since it comes from a sample."""


class Candidates(Protocol):
    """A way to find records near queries."""

    def nearest(self, queries: Points, depth: int) -> Found:
        """Return for each query the squared distances and places of at least ``depth`` records,
        *all* up to some distance.

        Args:
            queries: shape (b, d), integer points.
            depth: 1 to the number of records.
        """


class Exhaustive:
    """Squared distances to all records by one matrix product per block, exact in float32.

    Records are stored as rows (-2 y, |y|^2, 1) and multiplied with (x, 1, |x|^2), which gives a sum
    of integers whose partial sums stay within 2^24 (``PointGrid``). A few thousand records, in the
    arbitrary order of a hash, suggest a distance. One comparison then finds all records within it.

    Args:
        points: shape (n, d), integer points.
    """

    def __init__(self, points: Points | ShortPoints) -> None:
        records, dimension = points.shape
        self._columns = np.empty((dimension + 2, records), dtype=np.float32)
        self._columns[dimension + 1] = 1.0
        for start in range(0, records, _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            some = np.ascontiguousarray(points[part].T, dtype=np.float32)
            # Integers up to 2^22, whose sums of any order are exact.
            np.einsum("ij,ij->j", some, some, out=self._columns[dimension, part])
            np.multiply(some, -2, out=self._columns[:dimension, part])

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
        block = np.empty((min(_ROWS, len(rows)), self._columns.shape[1]), dtype=np.float32)
        for start in range(0, len(rows), _ROWS):
            part = rows[start : start + _ROWS]
            # bit-exact: whole numbers whose sums float32 holds (``POINT_RADIUS``), in any order.
            yield np.matmul(part, self._columns, out=block[: len(part)])

    def _nearest(self, distances: Points, depth: int) -> tuple[Points, Places]:
        records = len(distances)
        if depth < records:
            sample = distances[:_SAMPLE]
            wanted = depth
            while wanted < records:
                wanted = min(records, int(np.ceil(wanted * _SPARE)) + 1)
                at = -(-len(sample) * wanted // records)
                limit = np.partition(sample, at - 1)[at - 1]
                places = np.flatnonzero(distances <= limit)
                if len(places) >= depth:
                    return distances[places], places
        return distances.copy(), np.arange(records)
