"""What the label laws read from logits: how far each is behind the top one, in steps of a public grid."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from reticent.core.checks import finite_array
from reticent.noise import Grid

Integers = npt.NDArray[np.int64]

ROUNDING_STEPS = 3.0
"""Rounding moves a gap by at most 5/8 of a step, so a difference of two gaps, compared between two neighbours, by 2.5."""

_FURTHEST = 2.0**50


def gaps_to_top(logits: npt.ArrayLike, *, classes: int, grid: Grid) -> Integers:
    """Whole steps from each row's largest logit down to each of its logits, at most 2**50.

    Only differences of logits are bounded between neighbours; all logits together may move by any amount. So they are
    subtracted *before* rounding: a clip of single logits to the grid's ends would not keep their differences. The cap on
    gaps does: raising every logit to at least top - C is monotone and commutes with moving all logits together, so it
    never widens the range of a change. Below the cap the rounding of the subtraction is under 1/8 of a step.

    Args:
        logits: shape (n, classes), finite.
        classes: number of columns.
        grid: the public grid.

    Returns:
        Shape (n, classes), int64, 0 at the top.

    Raises:
        InvalidInput: wrong shape, NaN or infinity. Values are never shown.

    Example:
        >>> gaps_to_top([[1e9 + 3.0, 1e9]], classes=2, grid=Grid(0)).tolist()
        [[0, 3]]
    """
    array = finite_array(logits, name="logits", ndim=2, columns=classes, allow_empty=True)
    with np.errstate(over="ignore"):  # an overflow is a gap far beyond the cap
        steps = np.rint(np.ldexp(array.max(axis=1, keepdims=True, initial=-np.inf) - array, -grid.exponent))
    return np.asarray(np.minimum(steps, _FURTHEST).astype(np.int64))
