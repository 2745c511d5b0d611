"""The private records of one fit as points: in one table, or read from shards a block at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from reticent.core.arrays import Array, Integers
from reticent.tables.shards import Shards

_BLOCK = 4096
"""Records whose residuals stay in the cache. Sums of whole numbers are those of one block."""


@dataclass(frozen=True, eq=False)
class Voters:
    """The private records of one fit, those of a person one after the other.

    Attributes:
        points: shape (n, m), whole numbers.
        codes: shape (n,), or (n, columns) for several labels: places of labels, or targets in grid
            steps.
        starts: shape (persons,), where each person's records begin, or None where every record
            is protected by itself.
    """

    points: Array
    codes: Integers
    starts: Integers | None

    def __len__(self) -> int:
        return len(self.codes)

    def blocks(self) -> Iterator[Voters]:
        """Yield a few thousand of them at a time, or all at once where they are persons'."""
        if self.starts is not None or len(self) <= _BLOCK:
            yield self
            return
        for start in range(0, len(self), _BLOCK):
            part = slice(start, start + _BLOCK)
            yield Voters(self.points[part], self.codes[part], None)

    @property
    def units(self) -> int:
        """The number of records, or of persons where they are protected."""
        return len(self.codes) if self.starts is None else len(self.starts)


@dataclass(frozen=True, eq=False)
class ReadVoters:
    """Records that are read, and made points, whenever they are asked.

    What is summed over records are whole numbers that doubles hold exactly, so the sum over blocks
    is that over one table, however the records are split.

    Attributes:
        rows: the records in shards, or a table of them in memory, shape (n, features), finite.
        codes: codes as ``Voters`` has them, in the order of the records.
        points_of: map from rows, shape (n, features), to points, each from its own row alone.
    """

    rows: Shards | Array
    codes: Integers
    points_of: Callable[[Array], Array]

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def units(self) -> int:
        """The number of records."""
        return len(self.codes)

    def blocks(self) -> Iterator[Voters]:
        """Yield a few thousand of them at a time."""
        start, table = 0, self.rows
        tables = (
            table.blocks()
            if isinstance(table, Shards)
            else (table[at : at + _BLOCK] for at in range(0, max(1, len(table)), _BLOCK))
        )
        for rows in tables:
            yield Voters(self.points_of(rows), self.codes[start : start + len(rows)], None)
            start += len(rows)


def voters_of(points: Array, codes: Integers, persons: Integers | None) -> Voters:
    """Return records in memory, those of a person brought together.

    Args:
        points: shape (n, m), whole numbers.
        codes: codes as ``Voters`` has them.
        persons: a number for each record, or None.
    """
    if persons is None:
        return Voters(points, codes, None)
    order = np.argsort(persons, kind="stable")
    starts = np.flatnonzero(np.diff(persons[order], prepend=-1))
    return Voters(points[order], codes[order], starts)
