"""Votes of chosen neighbours, as integers."""

from __future__ import annotations

import numpy as np

from reticent.core.arrays import Integers


def label_votes(chosen: Integers, labels: Integers, *, classes: int) -> Integers:
    """Return the histogram of labels of the chosen records.

    **Guarantee.** When one record leaves the chosen and one enters, one count may fall and one rise
    by 1. So the histogram moves by at most sqrt(2) in l2 and the largest count by at most 1. If a
    record only enters, both move by at most 1.

    Args:
        chosen: shape (b, k), places in ``labels``, -1 for nobody.
        labels: shape (n,), 0 to classes - 1.
        classes: number of labels.

    Returns:
        Shape (b, classes). Private.

    Example:
        >>> label_votes(
        ...     np.array([[0, 2, -1], [1, -1, -1]]), np.array([1, 0, 1]), classes=2
        ... ).tolist()
        [[0, 2], [1, 0]]
    """
    rows, columns = np.nonzero(chosen >= 0)
    cells = rows * classes + labels[chosen[rows, columns]]
    return (
        np.bincount(cells, minlength=len(chosen) * classes)
        .reshape(len(chosen), classes)
        .astype(np.int64)
    )
