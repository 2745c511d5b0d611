"""Ranges of activations and of their slopes over intervals, read from monotone tables.

A library's tanh or erf is neither monotone in its last bit nor equal from one vector width to the
next. A table of cells holds a lower and an upper bound over each whole cell. A range read from it
is isotone by construction, because a smaller interval touches fewer cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.grids.arithmetic import Interval, power_of_two_at_least
from reticent.networks.layers import ActivationKind

_CELLS = 2**14
_SLOPE_UNIT = 2.0**-20


@dataclass(frozen=True)
class _Shape:
    """The turns of a function (between turns it is monotone), a bound on |f''| at its turns, and
    its range.
    """

    turns: tuple[float, ...]
    bend: float
    least: float
    greatest: float


_INFINITE = float("inf")
_VALUES = {
    ActivationKind.TANH: _Shape((), 0.0, -1.0, 1.0),
    ActivationKind.SIGMOID: _Shape((), 0.0, 0.0, 1.0),
    ActivationKind.GELU: _Shape((-0.7517915,), 0.8, -0.17, _INFINITE),
    ActivationKind.SOFTPLUS: _Shape((), 0.0, 0.0, _INFINITE),
}
_SLOPES = {
    ActivationKind.TANH: _Shape((0.0,), 2.0, 0.0, 1.0),
    ActivationKind.SIGMOID: _Shape((0.0,), 0.125, 0.0, 0.25),
    ActivationKind.GELU: _Shape((-1.4142136, 1.4142136), 1.0, -0.13, 1.13),
    ActivationKind.SOFTPLUS: _Shape((), 0.0, 0.0, 1.0),
}
_FUNCTION_ERROR = (
    2.0**-46
)  # generous against the few ulps of numpy and scipy, relative to values of at most 2**5


@dataclass(frozen=True, eq=False)
class RangeTable:
    """Least and greatest values over any run of cells, in whole multiples of ``unit``.

    ``lower[k]`` and ``upper[k]`` hold the range over 2**k neighbouring cells (a sparse table), so a
    query of any length takes two look-ups.
    """

    lower: tuple[Array, ...]
    upper: tuple[Array, ...]
    unit: float

    @classmethod
    def build(cls, lower: Array, upper: Array, unit: float) -> RangeTable:
        """Return the table over cells with these real lower and upper bounds, rounded outward to
        ``unit``.
        """
        lows, highs = [np.floor(lower / unit)], [np.ceil(upper / unit)]
        span = 1
        while 2 * span <= len(lower):
            lows.append(np.minimum(lows[-1][:-span], lows[-1][span:]))
            highs.append(np.maximum(highs[-1][:-span], highs[-1][span:]))
            span *= 2
        return cls(tuple(lows), tuple(highs), unit)

    def over(self, first: npt.NDArray[np.int64], last: npt.NDArray[np.int64]) -> Interval:
        """Return the range over the cells ``first`` to ``last``, both included, elementwise."""
        level = np.frexp((last - first + 1).astype(np.float64))[1] - 1
        low, high = np.empty(first.shape), np.empty(first.shape)
        for k in np.unique(level):
            here = level == k
            start, end = first[here], last[here] - 2 ** int(k) + 1
            low[here] = np.minimum(self.lower[k][start], self.lower[k][end])
            high[here] = np.maximum(self.upper[k][start], self.upper[k][end])
        return Interval(low, high, self.unit)


@dataclass(frozen=True, eq=False)
class SmoothActivation:
    """Values and slopes of a smooth activation over intervals within a public range.

    Attributes:
        kind: the activation.
        cell: the width of one cell, a power of two.
        reach: half the number of cells, which cover [-reach * cell, reach * cell].
    """

    kind: ActivationKind
    cell: float
    reach: int
    values: RangeTable
    slopes: RangeTable

    @classmethod
    def build(cls, kind: ActivationKind, largest_input: float) -> SmoothActivation:
        """Return the tables for pre-activations of at most ``largest_input`` in magnitude."""
        cell = power_of_two_at_least(2.0 * max(largest_input, 2.0**-10) / _CELLS)
        reach = ceil(largest_input / cell) + 1
        edges = np.asarray(np.arange(-reach, reach + 1) * cell, dtype=np.float64)
        value_unit = power_of_two_at_least(largest_input + 1.0) * 2.0**-30
        error = _FUNCTION_ERROR * (1.0 + largest_input)
        values = _cells(edges, kind.apply(edges), _VALUES[kind], error, value_unit)
        slopes = _cells(edges, kind.slope(edges), _SLOPES[kind], error, _SLOPE_UNIT)
        return cls(kind, cell, reach, values, slopes)

    def ranges(self, inputs: Interval) -> tuple[Interval, Interval]:
        """Return the range of values and the range of slopes over each interval of ``inputs``."""
        # Both ends round down, so that an interval that ends at the edge of two cells touches both,
        # as the point does.
        ratio = inputs.unit / self.cell
        first = np.floor(inputs.lower * ratio).astype(np.int64) + self.reach
        last = np.floor(inputs.upper * ratio).astype(np.int64) + self.reach
        return self.values.over(first, last), self.slopes.over(first, last)


def _cells(edges: Array, at_edges: Array, shape: _Shape, error: float, unit: float) -> RangeTable:
    """Return bounds over each cell, from the values at its two edges and the distance by which a
    curve that turns inside can leave the chord.
    """
    cell = edges[1] - edges[0]
    margin = np.full(len(edges) - 1, error)
    for turn in shape.turns:
        turning = (edges[:-1] <= turn + 1e-6) & (edges[1:] >= turn - 1e-6)
        margin[turning] += 0.125 * cell**2 * shape.bend
    lower = np.minimum(at_edges[:-1], at_edges[1:]) - margin
    upper = np.maximum(at_edges[:-1], at_edges[1:]) + margin
    # Far out a cell can be wide. What is known of the whole line also keeps products of slopes
    # exact.
    return RangeTable.build(np.maximum(lower, shape.least), np.minimum(upper, shape.greatest), unit)


def rectify(inputs: Interval) -> tuple[Interval, Interval]:
    """Return the ranges of values and of slopes of ReLU over each interval.

    A neuron is on (slope 1) if its interval lies at or above 0, off (slope 0) if below 0, else
    unstable (0 to 1). An interval that ends *at* 0 from below counts as unstable. Were it off, the
    point interval [0, 0] inside it, which is on, would not be contained, and the bound would not be
    isotone.
    """
    values = Interval(np.maximum(inputs.lower, 0.0), np.maximum(inputs.upper, 0.0), inputs.unit)
    return values, Interval(
        (inputs.lower >= 0).astype(np.float64), (inputs.upper >= 0).astype(np.float64), 1.0
    )


def scaled_by(gradient: Interval, slopes: Interval, largest: float) -> Interval:
    """Return products of slopes and gradients, both over intervals. ``slopes`` broadcasts against
    ``gradient``.

    Args:
        gradient: at most ``largest`` in magnitude, rounded to 26 bits of it where needed.
        slopes: multiples of 1 (ReLU) or of 2**-20 (tables).
        largest: a public bound on the gradient's magnitude, in real terms.
    """
    if slopes.unit == 1.0:  # each slope is 0, 1 or the interval between
        lower = np.minimum(gradient.lower * slopes.lower, gradient.lower * slopes.upper)
        upper = np.maximum(gradient.upper * slopes.lower, gradient.upper * slopes.upper)
        return Interval(lower, upper, gradient.unit)
    coarse = gradient.on_grid(max(gradient.unit, power_of_two_at_least(largest) * 2.0**-26))
    corners = [
        end * slope
        for end in (coarse.lower, coarse.upper)
        for slope in (slopes.lower, slopes.upper)
    ]
    lower = np.minimum(np.minimum(corners[0], corners[1]), np.minimum(corners[2], corners[3]))
    upper = np.maximum(np.maximum(corners[0], corners[1]), np.maximum(corners[2], corners[3]))
    return Interval(lower, upper, coarse.unit * slopes.unit)
