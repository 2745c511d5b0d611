"""Correct rounding of real quantities: the exact value rounded up to a public grid, by way of
floating point.

Rounding up to a grid is monotone. So a bound that is monotone under inclusion as a real number
stays so to the last bit once it is rounded *correctly*, as the exact value demands and not as the
floating-point one suggests. A floating-point value with a proven error decides that nearly always.
Where a grid point lies inside the error, exact rational arithmetic does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, isqrt

import numpy as np

from reticent.core.arrays import Array
from reticent.grids.arithmetic import power_of_two_at_least

OFFSET = Fraction(51, 128)
"""Grid points are (k + OFFSET) units. Networks with round weights have round values, which would
often lie on k units.
"""

GRID_BITS = 26

# Long doubles have 64 or 113 bits where they are more than float64. Elsewhere they are not trusted.
_LONG = 2.0 ** -(np.finfo(np.longdouble).nmant + 1)
_ROUNDOFF = {
    "float64": 2.0**-53,
    "float32": 2.0**-24,
    "longdouble": _LONG if np.finfo(np.longdouble).nmant in {63, 112} else 2.0**-53,
}


def grid_unit(scale: float) -> float:
    """Return the step of the grid that quantities of at most ``scale`` in magnitude are rounded to,
    a power of two.
    """
    return power_of_two_at_least(scale) * 2.0**-GRID_BITS


def float_error(terms: int, scale: float, precision: str = "float64") -> float:
    """Return a bound on the floating-point error of a chain of linear maps, slopes in [0, 1] and
    maxima.

    A dot product of k terms is off by at most (k + 2) u times the sum of its magnitudes in any
    order (Higham, section 3.1). Errors pass through later maps as magnitudes do. The term 16 leaves
    room for the few operations per entry.

    Args:
        terms: sum of the lengths of all dot products on the way.
        scale: a bound on the sum of magnitudes carried through all maps.
        precision: "float64", "float32" or "longdouble".
    """
    return 16.0 * (terms + 16.0) * _ROUNDOFF[precision] * scale


def steps_up(values: Array, unit: float) -> Array:
    """Return the number k of the least grid point (k + OFFSET) unit at or above each value, for
    values without error.
    """
    return np.asarray(np.ceil(values / unit - float(OFFSET)))


def grid_point(steps: Array, unit: float) -> Array:
    """Return (k + OFFSET) unit, exact for k below 2**45."""
    return np.asarray((steps + float(OFFSET)) * unit)


def rounded_up(
    values: Array,
    error: float,
    unit: float,
    exactly: Callable[[tuple[int, ...]], Fraction | Surd],
    closer: Callable[[tuple[int, ...]], tuple[np.longdouble, float]] | None = None,
) -> Array:
    """Return the least grid point at or above the exact quantities, shape as ``values``.

    Args:
        values: floating-point values of the quantities, infinite or NaN where they left its range.
        error: bound on the values' distance from the exact quantities.
        unit: step of the grid.
        exactly: function from an index of ``values`` to the exact quantity. It is asked only where
            ``error`` leaves a choice.
        closer: function from such an index to a value and its error, or None if there is none. It
            is asked before ``exactly`` because it takes less time.

    Example:
        >>> rounded_up(np.array([0.3, 0.5]), 1e-9, 1.0, lambda index: Fraction(0)).tolist()
        [0.3984375, 1.3984375]
    """
    low, high = steps_up(values - error, unit), steps_up(values + error, unit)
    open_ends = (low != high) | ~np.isfinite(high)
    for index in map(tuple, np.argwhere(open_ends).tolist()):
        if closer is not None:
            value, bound = closer(index)
            ends = [np.ceil((value + end) / unit - float(OFFSET)) for end in (-bound, bound)]
            if ends[0] == ends[1] and np.isfinite(ends[1]):
                high[index] = float(ends[1])
                continue
        high[index] = ceil(exactly(index) / Fraction(unit) - OFFSET)
    return grid_point(high, unit)


@dataclass(frozen=True)
class Surd:
    """The number ``rational + sqrt(square)``, exactly.

    Attributes:
        rational: any fraction.
        square: a fraction of at least 0.

    Example:
        >>> ceil(Surd(Fraction(1), Fraction(2))), ceil(Surd(Fraction(1), Fraction(4)))
        (3, 3)
    """

    rational: Fraction
    square: Fraction

    def __add__(self, other: Fraction) -> Surd:
        return Surd(self.rational + other, self.square)

    __radd__ = __add__

    def __sub__(self, other: Fraction) -> Surd:
        return Surd(self.rational - other, self.square)

    def __truediv__(self, other: Fraction) -> Surd:
        """Return the number divided by a fraction above 0."""
        return Surd(self.rational / other, self.square / other**2)

    def __ceil__(self) -> int:
        numerator, denominator = self.square.as_integer_ratio()
        # The root lies within 1 / denominator above this.
        below = Fraction(isqrt(numerator * denominator), denominator)
        least = ceil(self.rational + below)
        return least if (least - self.rational) ** 2 >= self.square else least + 1


def fractions(values: Array) -> Array:
    """Return the same numbers as an array of exact fractions (dtype object)."""
    exact = np.empty(values.shape, dtype=object)
    exact.ravel()[:] = [
        Fraction(value) for value in np.asarray(values, dtype=np.float64).ravel().tolist()
    ]
    return exact


def quotient(numerators: Array, denominators: Array) -> Array:
    """Return the quotient entry by entry, with 1 in the place of denominators that are not above 0.
    It is exact for whole numbers and fractions.

    Example:
        >>> quotient(np.array([1.0, 0.0]), np.array([4.0, 0.0])).tolist()
        [0.25, 0.0]
    """
    divisors = np.where(denominators > 0, denominators, 1)
    if (
        divisors.dtype == object
    ):  # Python's own division of two whole numbers would leave the fractions
        return np.asarray(np.frompyfunc(Fraction, 2, 1)(numerators, divisors), dtype=object)
    return np.asarray(numerators / divisors)
