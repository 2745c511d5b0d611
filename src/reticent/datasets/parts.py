"""The check of labels, which every kind of data set makes."""

from __future__ import annotations

import numpy as np

from reticent.core.arrays import Integers
from reticent.core.errors import InvalidInput


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
