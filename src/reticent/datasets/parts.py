"""The steps that every kind of data set takes with its parts: check their labels, and cut one in
two to tune on.
"""

from __future__ import annotations

import numpy as np

from reticent.core.arrays import Integers
from reticent.core.errors import InvalidInput, InvalidParameter


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


def tuning_cut(rows: int, *, held_out: float, seed: int) -> tuple[Integers, Integers]:
    """Draw row numbers to train on and row numbers to score on, for choosing settings.

    Args:
        rows: number of rows of the training part.
        held_out: share of them to score on, in (0, 1).
        seed: the seed that chooses the rows.

    Raises:
        InvalidParameter: ``held_out`` leaves one side empty.

    Example:
        >>> train, score = tuning_cut(10, held_out=0.3, seed=0)
        >>> sorted([*train.tolist(), *score.tolist()]), len(score)
        ([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 3)
    """
    kept = rows - round(rows * held_out)
    if not 0 < kept < rows:
        raise InvalidParameter(
            f"held_out={held_out!r}: expected a share in (0, 1) that leaves both parts non-empty"
        )
    order = np.random.default_rng(seed).permutation(rows)
    return order[:kept], order[kept:]
