"""The public grid that values are rounded to before integer noise is added."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from reticent.core.arrays import Array, Integers
from reticent.core.checks import positive
from reticent.core.errors import InvalidParameter

LIMIT = 2**60
"""Largest multiple of the step. Values beyond are moved to it, so that adding noise cannot leave
int64.
"""

RESOLUTION_BITS = 20
"""Number of grid steps in the smaller of noise scale and sensitivity, as a power of two. Rounding
then costs about 1e-6 of the noise.
"""

_LARGEST_EXPONENT = 900


@dataclass(frozen=True)
class Grid:
    """All integer multiples of 2**exponent, 2**60 of them on either side of zero.

    Rounding moves a coordinate by at most half a step, and the clip to the ends is 1-Lipschitz in
    each coordinate. So for values u, v: ||round(u) - round(v)|| <= ||u - v|| / step + ||(1, ...,
    1)||, in steps, for l1, l2 and l-infinity. Both maps are exact in floating point, because a
    power of two only moves the exponent.

    Attributes:
        exponent: exponent of the step, chosen from public settings only, in -900 .. 900.

    Example:
        >>> Grid(-1).round(np.array([0.3, 1e300])).tolist()
        [1, 1152921504606846976]

    Utility:
        A value moves by at most half a step.

    Runtime:
        O(1) a number, 2 nanoseconds (benchmarks/runtimes.py).

    References:
        - Mironov (2012), "On significance of the least significant bits for differential privacy",
          doi:10.1145/2382196.2382264 (the snapping to a grid, which is part of the sensitivity
          here).

    See Also:
        reticent.mechanisms.AdditiveMechanism: noise on a grid.
    """

    exponent: int

    def __post_init__(self) -> None:
        if abs(self.exponent) > _LARGEST_EXPONENT:
            raise InvalidParameter(
                f"grid step 2**{self.exponent}: expected an exponent in -900 .. 900; rescale "
                "the outputs"
            )

    @classmethod
    def finer_than(cls, length: float) -> Grid:
        """Return the grid with 2**20 to 2**21 steps in ``length``.

        Args:
            length: a public positive number, in output units.
        """
        _, exponent = math.frexp(positive(length, name="length"))
        return cls(exponent - 1 - RESOLUTION_BITS)

    @property
    def step(self) -> float:
        """Distance of two grid points, in output units."""
        return math.ldexp(1.0, self.exponent)

    @property
    def limit(self) -> float:
        """Largest absolute value that is kept. Larger ones are clipped to it."""
        return math.ldexp(float(LIMIT), self.exponent)

    def round(self, values: Array) -> Integers:
        """Return the nearest grid points of finite ``values``, in steps: same shape, int64, at most
        2**60 in absolute value.
        """
        with np.errstate(
            over="ignore"
        ):  # an overflow is a value far beyond the limit, and clipped like one
            scaled = np.rint(np.ldexp(values, -self.exponent))
        return np.asarray(np.clip(scaled, -LIMIT, LIMIT).astype(np.int64))

    def sum(self, points: Integers, noise: Integers) -> Integers:
        """Return ``points`` + ``noise``, moved to the ends -2**61 and 2**61 where it lies beyond,
        same shape.

        Samplers return magnitudes of 2**62 and more as some number of that size. As points are at
        most 2**60, such a sum lies beyond an end either way. So the result is a function of the
        unlimited sum, and has the same cost.
        """
        return np.asarray(np.clip(points + noise, -2 * LIMIT, 2 * LIMIT))

    def values(self, steps: Integers) -> Array:
        """Return grid points as float64 in output units, same shape. Above 2**53 steps the nearest
        double is returned.
        """
        return np.asarray(np.ldexp(steps.astype(np.float64), self.exponent))
