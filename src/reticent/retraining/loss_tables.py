"""Sigmoid and softmax of intervals by tables that are monotone to the last bit.

A library's ``exp`` is accurate but nobody promises that it is monotone, and vector and scalar
code may differ in the last bit. Here a function is the chord between tabulated whole numbers.
Within a cell it is a product and a sum of correctly rounded operations, each monotone. At a cell's
end it is the next whole number, which no rounding can pass. What the chord misses is added outward.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from reticent.core.arrays import Array

_MARGIN = 2.0**-25
"""Covers chord and table: 1.2e-8 for the sigmoid; 0.8e-8 + classes 2^-30 for the softmax."""

_MARGIN_PER_CLASS = 2.0**-29


@dataclass(frozen=True, eq=False)
class ChordTable:
    """An increasing function on [-reach, reach], constant beyond, as chords between whole numbers.

    Attributes:
        reach: a power of two.
        cells: cells per unit of length, a power of two.
        values: whole numbers below 2**53, increasing, shape (2 reach cells + 1,).
        steps: differences of neighbouring values, and a last 0.
    """

    reach: float
    cells: float
    values: Array
    steps: Array

    @classmethod
    def of(cls, values: Array, reach: float, cells: float) -> ChordTable:
        """Return the table of increasing ``values`` rounded to whole numbers."""
        whole = np.rint(values)
        return cls(reach, cells, whole, np.append(np.diff(whole), 0.0))

    def __call__(self, points: Array) -> Array:
        """Return the function at ``points``, any shape, not NaN. It never decreases in them."""
        place = np.clip(points, -self.reach, self.reach)
        place += self.reach
        place *= self.cells
        cell = place.astype(np.int64)
        place -= cell
        place *= self.steps.take(cell)
        place += self.values.take(cell)
        return place


def _grid(reach: float, cells: float) -> Array:
    return np.arange(-reach * cells, reach * cells + 1) / cells


_SIGMOID_SCALE = 2.0**52
_EXP_SCALE = 2.0**29
_SIGMOID = ChordTable.of(expit(_grid(32.0, 1024.0)) * _SIGMOID_SCALE, 32.0, 1024.0)
_EXP = ChordTable.of(np.exp(_grid(16.0, 2048.0)) * _EXP_SCALE, 16.0, 2048.0)


def sigmoid_range(lower: Array, upper: Array) -> tuple[Array, Array]:
    """Return bounds on the sigmoid over intervals, in [0, 1].

    Nested intervals have nested bounds, exactly.

    Args:
        lower, upper: any shape, finite, ``lower <= upper``.

    Example:
        >>> low, high = sigmoid_range(np.array([0.0]), np.array([0.0]))
        >>> bool(0.5 - 1e-7 < low[0] < 0.5 < high[0] < 0.5 + 1e-7)
        True
    """
    low = _SIGMOID(lower)
    low /= _SIGMOID_SCALE
    low -= _MARGIN
    high = _SIGMOID(upper)
    high /= _SIGMOID_SCALE
    high += _MARGIN
    return np.maximum(low, 0.0, out=low), np.minimum(high, 1.0, out=high)


def softmax_range(least: Array) -> tuple[Array, Array]:
    """Return bounds on softmax probabilities, from lower bounds on all differences of two logits.

    Args:
        least: shape (c, c, n), ``least[j, i]`` at most z_j - z_i. The diagonal is not read.

    Returns:
        Lower and upper bounds, each of shape (c, n), in [0, 1]. Larger ``least`` never widens them.

    Example:
        >>> low, high = softmax_range(np.zeros((4, 4, 1)))
        >>> bool(np.all(low < 0.25) and np.all(0.25 < high) and np.all(high - low < 1e-6))
        True
    """
    classes = least.shape[0]
    margin = _MARGIN + classes * _MARGIN_PER_CLASS
    low, high = np.empty(least.shape[1:]), np.empty(least.shape[1:])
    for i in range(classes):
        # Terms are added one by one in a fixed order: rounding a sum of two is monotone, reordering
        # sums is not.
        most_others, least_others = np.ones(least.shape[2:]), np.ones(least.shape[2:])
        beyond = np.zeros(least.shape[2:], dtype=bool)
        for j in range(classes):
            if j == i:
                continue
            most = -least[i, j]
            # Beyond its ends the table is constant: a bound on one side only. On the other, exp
            # lies between 0 and infinity.
            beyond |= most > _EXP.reach
            most_others += _EXP(most) / _EXP_SCALE
            least_others += np.where(least[j, i] < -_EXP.reach, 0.0, _EXP(least[j, i]) / _EXP_SCALE)
        low[i] = np.where(beyond, 0.0, 1.0 / most_others - margin)
        high[i] = 1.0 / least_others + margin
    return np.maximum(low, 0.0, out=low), np.minimum(high, 1.0, out=high)
