"""One pass per query over all records, which lists the nearest ones in order, complete up to some
distance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Integers
from reticent.core.checks import count
from reticent.neighbours.integer_points import Points, check_points
from reticent.neighbours.records import Records

_ROWS = 256
_RANK_BITS = 32
_RANK_MASK = 2**_RANK_BITS - 1
_PAD = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class NeighbourLists:
    """Neighbours of a block of queries, nearest first, ties by the records' own order.

    Attributes:
        first: number of the block's first query.
        queries: shape (b, d), integer points.
        order: shape (b, width), places in ``Records``, -1 after the end of a list.
        lengths: shape (b,), numbers of listed records. Every record that is not listed comes after
            every one that is.
    """

    first: int
    queries: Points
    order: Integers
    lengths: Integers

    def __len__(self) -> int:
        return len(self.order)

    def rows(self, which: npt.NDArray[np.bool_]) -> NeighbourLists:
        """Return the lists of the queries that ``which``, shape (b,) bool, marks. ``first``
        stays.
        """
        return NeighbourLists(
            self.first, self.queries[which], self.order[which], self.lengths[which]
        )


class NeighbourSearch:
    """Sorted neighbour lists of any depth.

    *Exact.* Squared distances are integers (``PointGrid``), and a list holds *all* records up to
    some distance, sorted by (distance, place in ``Records``). So a list of any depth is a beginning
    of the one full order of all records. The way candidates are found changes nothing but time.

    Args:
        records: the records.

    Edge cases: no records give empty lists. A depth beyond the number of records lists all.

    Example:
        >>> search = NeighbourSearch(Records.of([[0, 3], [0, 1], [0, 2]], [0, 1, 2], None))
        >>> block = next(search.lists([[0, 0]], depth=2))
        >>> search.records.votes[block.order[0, :2]].tolist()
        [1, 2]
    """

    def __init__(self, records: Records) -> None:
        self.records = records

    def lists(
        self, queries: npt.ArrayLike, *, depth: int, rows: int = _ROWS
    ) -> Iterator[NeighbourLists]:
        """Yield blocks of lists of ``depth`` records each, or of all records where there are fewer.

        Args:
            queries: shape (n, d), integer points.
            depth: at least 1.
            rows: number of queries per block. It changes memory and time only.

        Raises:
            InvalidInput: queries that are not integer points of the records' dimension.
        """
        points = check_points(queries, name="queries", dimension=self.records.dimension)
        depth, rows = count(depth, name="depth"), count(rows, name="rows")
        for first in range(0, len(points), rows):
            yield self._block(first, points[first : first + rows], min(depth, len(self.records)))

    def deeper(self, lists: NeighbourLists, row: int, *, depth: int) -> Integers:
        """Return the list of one query of a block anew, ``depth`` long. It begins with the old
        one.
        """
        block = self._block(
            lists.first, lists.queries[row : row + 1], min(depth, len(self.records))
        )
        return block.order[0, : block.lengths[0]]

    def _block(self, first: int, points: Points, depth: int) -> NeighbourLists:
        if depth == 0:
            return NeighbourLists(
                first, points, np.full((len(points), 0), -1), np.zeros(len(points), dtype=np.int64)
            )
        found = list(self.records.candidates.nearest(points, depth))
        lengths = np.array([len(near) for near, _ in found], dtype=np.int64)
        packed = np.full((len(points), int(lengths.max())), _PAD, dtype=np.int64)
        for row, (near, squared) in enumerate(found):
            packed[row, : len(near)] = (squared << _RANK_BITS) | self.records.places[near]
        packed.sort(axis=1)
        # Cut to the depth, so that shards give the same list, and with it the same number of coins.
        order = np.ascontiguousarray(packed[:, :depth] & _RANK_MASK)
        return NeighbourLists(first, points, order, np.full(len(points), depth, dtype=np.int64))
