"""The form of every table once it is loaded: rows as they were published, labels, and a held-out
part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Integers
from reticent.core.errors import InvalidInput

Rows = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Table:
    """Records with labels, in a training part and a held-out part.

    Nothing is scaled, filled in or encoded, because that takes a public schema
    (``reticent.tables.TabularSchema``). The held-out part is for final figures only. Every choice
    is made on the training part.

    Attributes:
        name: the name it was loaded by.
        columns: one name per column.
        train_rows: numbers, or objects where columns hold words, shape (n, columns).
        train_labels: shape (n,), int64 in 0..classes - 1.
        test_rows: shape (k, columns).
        test_labels: shape (k,), int64.
        class_names: one word per class.
        origin: its source and licence.

    Raises:
        InvalidInput: shapes, types or ranges do not fit together.
    """

    name: str
    columns: tuple[str, ...]
    train_rows: Rows
    train_labels: Integers
    test_rows: Rows
    test_labels: Integers
    class_names: tuple[str, ...]
    origin: str

    def __post_init__(self) -> None:
        for part in ("train", "test"):
            rows: Rows = getattr(self, f"{part}_rows")
            labels: Integers = getattr(self, f"{part}_labels")
            if rows.ndim != 2 or rows.shape[1] != len(self.columns) or len(rows) == 0:
                raise InvalidInput(
                    f"{part}_rows: expected shape (n, {len(self.columns)}), got shape={rows.shape}"
                )
            check_labels(labels, rows=len(rows), classes=self.classes, name=f"{part}_labels")

    @property
    def classes(self) -> int:
        """The number of classes."""
        return len(self.class_names)


def last_fifth_held_out(rows: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return row numbers of the training part and of the held-out part, which is the last fifth of
    ``RandomState(0).permutation(rows)``.

    Example:
        >>> train, test = last_fifth_held_out(10)
        >>> len(train), len(test)
        (8, 2)
    """
    order = np.random.RandomState(0).permutation(rows)
    kept = rows - rows // 5
    return order[:kept], order[kept:]


def check_labels(labels: Integers, *, rows: int, classes: int, name: str) -> None:
    """Check that there is one label for each row.

    Args:
        labels: expected of shape (rows,), int64 in 0..classes - 1.
        rows: number of rows that they belong to, at least 1.
        classes: number of classes.
        name: the name of the labels in messages.

    Raises:
        InvalidInput: labels have another shape, type or range.
    """
    if labels.shape != (rows,) or labels.dtype != np.int64:
        raise InvalidInput(
            f"{name}: expected int64 of shape ({rows},), got dtype={labels.dtype} "
            f"shape={labels.shape}"
        )
    if labels.min() < 0 or labels.max() >= classes:
        raise InvalidInput(f"{name}: expected values in 0..{classes - 1}")
