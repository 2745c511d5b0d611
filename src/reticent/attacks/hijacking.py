"""Measures of feature-space hijacking of released tables: how near drawn rows are to the records.

Categories are read off as the largest entry of each one-hot group, as in the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.checks import finite_array
from reticent.core.errors import InvalidInput

Group = tuple[str, slice, bool]


@dataclass(frozen=True)
class HijackingQuality:
    """The quality of an attacker's reconstruction.

    Attributes:
        all_categories: share of rows whose categories were *all* right: the paper's "accuracy".
        category: mean share of categories that were right.
        mean_squared_error: mean squared error per encoded coordinate.
        correlation: Pearson's, of all drawn coordinates with the true ones. NaN where one side is
            constant.
        squared_error: mean squared l2 distance of a row, the quantity of reconstruction bounds.
    """

    all_categories: float
    category: float
    mean_squared_error: float
    correlation: float
    squared_error: float


def hijacking_quality(
    found: npt.ArrayLike, rows: npt.ArrayLike, groups: Sequence[Group]
) -> HijackingQuality:
    """Return how near ``found`` (shape (n, d)) is to the true encoded ``rows``.

    Args:
        found: the attacker's rows.
        rows: the true rows.
        groups: name, coordinates and whether they are one-hot, for each attribute
            (``TabularSchema.groups``).

    Raises:
        InvalidInput: shapes that do not fit, or values that are not finite.

    Edge cases: without one-hot groups both shares of categories are NaN.
    """
    guess = finite_array(found, name="found", ndim=2)
    truth = finite_array(rows, name="rows", ndim=2, columns=guess.shape[1])
    if len(guess) != len(truth):
        raise InvalidInput(f"found: expected {len(truth)} rows, got {len(guess)}")
    right = [
        guess[:, part].argmax(axis=1) == truth[:, part].argmax(axis=1)
        for _, part, one_hot in groups
        if one_hot
    ]
    table = np.stack(right, axis=1) if right else np.full((len(truth), 1), np.nan)
    squared = np.square(guess - truth)
    return HijackingQuality(
        all_categories=float(table.all(axis=1).mean()) if right else float("nan"),
        category=float(table.mean()),
        mean_squared_error=float(squared.mean()),
        correlation=float(np.corrcoef(guess.ravel(), truth.ravel())[0, 1]),
        squared_error=float(squared.sum(axis=1).mean()),
    )


def majority_guess(rows: npt.ArrayLike, count_of: int) -> Array:
    """Return the guess without any answer: the mean of public ``rows``, ``count_of`` times.

    The ``rows`` have shape (n, d).
    The largest entry of the mean of a one-hot code is its most frequent category, so this is the
    majority guess too.
    """
    mean = finite_array(rows, name="rows", ndim=2).mean(axis=0)
    return np.tile(mean, (count_of, 1))
