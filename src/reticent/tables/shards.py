"""Records in several tables that are read a block at a time, for instance from memory-mapped
files.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.checks import finite_array
from reticent.core.errors import InvalidInput

_AT_ONCE = 2**16
"""Rows that are turned into doubles at once."""


@dataclass(frozen=True, eq=False)
class Shards:
    """Labelled records in several tables, of which a few thousand rows are in memory at a time.

    Estimators of votes and ``PrivateKNNClassifier`` take them in place of ``X`` and ``y``, and
    find the same integers as from one table, whatever the split.

    Attributes:
        rows: arrays of shape (n_s, features), real numbers, usually ``numpy.memmap``. A table
            without rows is one like any other.
        labels: an array of shape (n_s,) for each of them.

    Raises:
        InvalidInput: there are no shards, shapes do not fit, or rows are not numbers.

    Example:
        >>> shards = Shards(([[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]), ([0], [1, 0]))
        >>> len(shards), shards.features, shards.all_labels().tolist()
        (3, 2, [0, 1, 0])
    """

    rows: tuple[npt.NDArray[Any], ...]
    labels: tuple[npt.NDArray[Any], ...]

    def __post_init__(self) -> None:
        rows = tuple(np.asanyarray(table) for table in self.rows)
        labels = tuple(np.asarray(column) for column in self.labels)
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "labels", labels)
        if not rows or len(rows) != len(labels):
            raise InvalidInput(
                f"shards: expected at least one, each with its labels, got {len(rows)} of rows and "
                f"{len(labels)} of labels"
            )
        for table, column in zip(rows, labels, strict=True):
            if (
                table.ndim != 2
                or table.shape[1] != rows[0].shape[-1]
                or table.shape[1] == 0
                or table.dtype.kind not in "fiub"
                or column.shape != table.shape[:1]
            ):
                raise InvalidInput(
                    "shards: expected numbers of shape (n, features), the same features in each, "
                    f"and n labels; got {table.dtype} of shape={table.shape} and labels of "
                    f"shape={column.shape}"
                )

    @classmethod
    def of_files(cls, rows: Sequence[str | Path], labels: Sequence[str | Path]) -> Shards:
        """Return memory-mapped rows and labels from pairs of .npy files.

        Raises:
            InvalidInput: a file cannot be read, or its content does not fit.
        """
        return cls(
            tuple(_mapped(Path(path)) for path in rows),
            tuple(_mapped(Path(path)) for path in labels),
        )

    def __len__(self) -> int:
        return sum(len(table) for table in self.rows)

    @property
    def features(self) -> int:
        """The number of values in a row."""
        return int(self.rows[0].shape[1])

    @property
    def first(self) -> Array:
        """The first row of the first table, shape (1, features), or (0, features)."""
        return finite_array(self.rows[0][:1], name="X", ndim=2, allow_empty=True)

    def all_labels(self) -> npt.NDArray[Any]:
        """Return the labels of all records, in order."""
        return np.concatenate(self.labels)

    def blocks(self) -> Iterator[Array]:
        """Yield rows in order, a few thousand at a time, float64. A table without rows gives one
        block of none.

        Raises:
            InvalidInput: rows hold NaN or infinity.
        """
        for table in self.rows:
            for start in range(0, max(1, len(table)), _AT_ONCE):
                block = table[start : start + _AT_ONCE]
                yield finite_array(block, name="X", ndim=2, allow_empty=True)
                _let_go(table)

    def check(self) -> None:
        """Read all rows once, so that no later pass can fail for what they hold.

        Raises:
            InvalidInput: rows hold NaN or infinity.
        """
        for _ in self.blocks():
            pass


def _let_go(table: npt.NDArray[Any]) -> None:
    """Give the pages of a mapped file back, which the next pass reads again.

    They would count as memory of this process.
    """
    pages = table.base
    if (
        isinstance(table, np.memmap)
        and table.mode == "r"  # others may hold what is not in the file
        and isinstance(pages, mmap.mmap)
        and hasattr(mmap, "MADV_DONTNEED")
    ):
        pages.madvise(mmap.MADV_DONTNEED)


def _mapped(path: Path) -> npt.NDArray[Any]:
    try:
        return np.asanyarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (OSError, ValueError, EOFError) as error:
        raise InvalidInput(f"shards: {str(path)!r} cannot be read as an .npy file") from error
