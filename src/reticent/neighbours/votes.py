"""Votes of chosen neighbours, as integers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Integers
from reticent.core.checks import count
from reticent.core.errors import InvalidInput

VOTE_STEPS = 256
"""Number of integer steps in one whole vote, where votes may be fractions."""


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


def weight_votes(chosen: Integers, weights: Integers) -> Integers:
    """Return the sum of the vote vectors of the chosen records, shape (b, c), from ``weights`` of
    shape (n, c). Private.
    """
    padded = np.concatenate([weights, np.zeros((1, weights.shape[1]), dtype=np.int64)])
    return (
        np.stack([padded[row].sum(axis=0) for row in chosen])
        if len(chosen)
        else np.zeros((0, weights.shape[1]), dtype=np.int64)
    )


def clipped_votes(attributes: npt.ArrayLike, *, tau: int) -> Integers:
    """Return vote vectors of at most ``tau`` whole votes each, in steps of 1 / VOTE_STEPS of a
    vote.

    A record with more than tau attributes spreads tau votes evenly over them, rounded down to whole
    steps.

    **Guarantee.** Each entry is at most VOTE_STEPS and each row sums to at most tau VOTE_STEPS, so
    the squared l2 norm of a row is at most tau VOTE_STEPS^2. Rows have no negative entries, so two
    of them differ by at most sqrt(2 tau) VOTE_STEPS in l2 and 2 tau VOTE_STEPS in l1.

    Args:
        attributes: shape (n, c), 0 or 1.
        tau: number of whole votes of one record, at least 1.

    Returns:
        Shape (n, c), int64.

    Raises:
        InvalidInput: entries other than 0 and 1, or not two axes.

    Example:
        >>> clipped_votes([[1, 1, 1, 0], [0, 1, 0, 0]], tau=2).tolist()
        [[170, 170, 170, 0], [0, 256, 0, 0]]

    References:
        - Zhu, Yu, Chandraker and Wang (2020), "Private-kNN: practical differential privacy for
          computer vision", doi:10.1109/CVPR42600.2020.01187, supplement C, definition 4 (for l1).
          The l2 statement is in docs/private-knn.md.

    See Also:
        reticent.mechanisms.NoisyAttributes: releases attributes by these votes.
    """
    bits = np.asarray(attributes)
    if (
        bits.ndim != 2
        or bits.dtype.kind not in "iubf"
        or not bool(((bits == 0) | (bits == 1)).all())
    ):
        raise InvalidInput(
            f"attributes: expected zeros and ones of shape (n, c), got shape={bits.shape} "
            f"dtype={bits.dtype}"
        )
    whole = bits.astype(np.int64)
    owned = np.maximum(whole.sum(axis=1, keepdims=True), 1)
    return np.asarray(whole * np.minimum(VOTE_STEPS, count(tau, name="tau") * VOTE_STEPS // owned))
