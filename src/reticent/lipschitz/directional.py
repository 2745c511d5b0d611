"""The largest derivative a . J t over all slopes in their certified ranges, for a functional a and
a direction t.

Behind the first ReLU, neuron j carries d_j c_j with c = W1 t and slope d_j. Behind a later one it
carries d_k y_k with y = W (...). For given slopes of the later layers the signs give the best
slopes of the first. The later layers are either relaxed (the product d y, d in [0, 1] and y in
[L, H], lies between two parallel-ended lines in y) or, where they are narrow, searched completely.
Both results are well-defined real numbers that only grow with the region. The same code computes
them in floating point with a proved error, or in exact fractions (arrays of dtype object).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.errors import CertificationFailed
from reticent.grids.arithmetic import power_of_two_at_least
from reticent.grids.rounding import quotient

Mask = npt.NDArray[np.bool_]
Choices = npt.NDArray[np.int8]

FREE = -1
"""A slope that is not decided, unlike 0 and 1."""


@dataclass(frozen=True, eq=False)
class Slopes:
    """The hidden neurons that are on or unstable at one region, shape (width,) for each layer."""

    on: tuple[Mask, ...]
    unstable: tuple[Mask, ...]

    @property
    def silent(self) -> bool:
        """True if some layer is off as a whole, so that the network is constant on the region."""
        return any(
            not (on | unstable).any() for on, unstable in zip(self.on, self.unstable, strict=True)
        )


@dataclass(frozen=True, eq=False)
class Relaxed:
    """Lines around d y for later layers: g d y <= g s y + |g| rise with s = ``share`` for g > 0, 1
    - share otherwise.

    Attributes:
        share, rise: one array of shape (rows, width) for each layer behind the first.
    """

    share: tuple[Array, ...]
    rise: tuple[Array, ...]

    def part(self, index: npt.NDArray[np.intp] | Mask) -> Relaxed:
        """Return some of the rows."""
        return Relaxed(
            tuple(part[index] for part in self.share), tuple(part[index] for part in self.rise)
        )


@dataclass(frozen=True, eq=False)
class Rows:
    """Pairs of a functional and a direction, one in each row.

    Attributes:
        functionals: the functional times the last layer's weights, shape (rows, last width).
        along: derivatives of the first layer's pre-activations along the direction, shape (rows,
            first width).
        lines: the relaxation of the later layers along the direction.
    """

    functionals: Array
    along: Array
    lines: Relaxed

    def __len__(self) -> int:
        return len(self.functionals)

    def part(self, index: npt.NDArray[np.intp] | Mask) -> Rows:
        """Return some of the rows."""
        return Rows(self.functionals[index], self.along[index], self.lines.part(index))

    def with_opposites(self) -> Rows:
        """Return these rows, and behind them the same with the opposite functionals."""
        twice = np.tile(np.arange(len(self)), 2)
        return Rows(
            np.concatenate([self.functionals, -self.functionals]),
            self.along[twice],
            self.lines.part(twice),
        )


@dataclass(frozen=True, eq=False)
class Derivatives:
    """Values of rows (a pair of a functional and a direction each), and where the best slopes are.

    Attributes:
        value: the relaxed maximum, shape (rows,).
        attained: the derivative that some choice of slopes gives, at most the maximum, shape
            (rows,).
        gap: the loss of each neuron of a later layer to the relaxation, shape (rows, sum of their
            widths). It is at most 0 where the slope is decided.
    """

    value: Array
    attained: Array
    gap: Array


def rescaled(matrices: list[Array]) -> tuple[tuple[Array, ...], float]:
    """Return the matrices divided by powers of two, so that each is at most 1 in magnitude, and the
    product of these powers. Nothing is rounded.

    Raises:
        CertificationFailed: the product leaves float64, or one matrix has weights so far apart
            that one of them would be lost.

    Example:
        >>> scaled, unit = rescaled([np.array([[3.0]]), np.array([[0.25]])])
        >>> [float(part[0, 0]) for part in scaled], unit
        ([0.75, 1.0], 1.0)
    """
    units = [power_of_two_at_least(float(np.abs(matrix).max(initial=0.0))) for matrix in matrices]
    exponent = sum(float(np.log2(unit)) for unit in units)
    if abs(exponent) > 900:
        raise CertificationFailed(
            "the product of the layers' weights leaves float64; expected a rescaled network"
        )
    scaled = tuple(matrix / unit for matrix, unit in zip(matrices, units, strict=True))
    if not all(
        np.array_equal(part * unit, matrix)
        for part, unit, matrix in zip(scaled, units, matrices, strict=True)
    ):
        raise CertificationFailed(
            "a layer has weights more than 2**1000 apart; expected a rescaled network"
        )
    return scaled, prod(units)


def ranges(along: Array, weights: tuple[Array, ...], slopes: Slopes) -> list[tuple[Array, Array]]:
    """Return the ranges [L, H] of the derivatives of each later layer's pre-activations, shape
    (rows, width).

    Args:
        along: derivatives of the first layer's pre-activations, shape (rows, width).
        weights: matrices from each hidden layer to the next.
        slopes: the slopes of all hidden layers.
    """
    low, high = along, along
    found = []
    for layer, weight in enumerate(weights):
        on, unstable = slopes.on[layer], slopes.unstable[layer]
        low = np.where(unstable, np.minimum(low, 0), np.where(on, low, 0))
        high = np.where(unstable, np.maximum(high, 0), np.where(on, high, 0))
        up, down = np.maximum(weight, 0).T, np.minimum(weight, 0).T
        low, high = low @ up + high @ down, high @ up + low @ down
        found.append((low, high))
    return found


def relaxed(bounds: list[tuple[Array, Array]]) -> Relaxed:
    """Return the lines over these ranges: the chord of max(0, y) above, the chord of min(0, y)
    below.
    """
    share, rise = [], []
    for low, high in bounds:
        high, low = np.maximum(high, 0), np.minimum(low, 0)
        slope = quotient(high, high - low)
        share.append(slope)
        rise.append(-slope * low)
    return Relaxed(tuple(share), tuple(rise))


def largest(
    rows: Rows, weights: tuple[Array, ...], slopes: Slopes, choices: Choices | None = None
) -> Derivatives:
    """Return the largest a . J t for each row under the relaxation, with some slopes of later
    layers decided.

    Args:
        rows: the pairs.
        weights: matrices from each hidden layer to the next.
        slopes: ranges of slopes.
        choices: 0, 1 or FREE for each neuron of the later layers, shape (rows, sum of their
            widths). With None all are free, and ``attained`` and ``gap`` stay empty.
    """
    gradient, constant = rows.functionals, 0
    starts = np.cumsum([0, *(len(weight) for weight in weights)])
    behind = []
    for layer in range(len(weights), 0, -1):
        share, rise = rows.lines.share[layer - 1], rows.lines.rise[layer - 1]
        free, kept = slopes.unstable[layer], slopes.on[layer]
        if choices is not None:
            decided = choices[:, starts[layer - 1] : starts[layer]]
            free, kept = free & (decided == FREE), kept | (free & (decided == 1))
        margin = np.where(free, np.abs(gradient) * rise, 0)
        constant = constant + margin.sum(axis=1)
        through = np.where(
            free, gradient * np.where(gradient > 0, share, 1 - share), np.where(kept, gradient, 0)
        )
        behind.append((gradient, through, margin, free, kept))
        gradient = through @ weights[layer - 1]
    shares = gradient * rows.along
    active = slopes.on[0] | (slopes.unstable[0] & (shares > 0))
    value = np.where(active, shares, 0).sum(axis=1) + constant
    if choices is None:
        return Derivatives(value, value[:0], value[:0])
    carried = np.where(active, rows.along, 0)
    gaps = []
    for weight, (gradient, through, margin, free, kept) in zip(
        weights, reversed(behind), strict=True
    ):
        derivative = carried @ weight.T
        gain = gradient * derivative
        gaps.append(np.where(free, through * derivative + margin - np.maximum(gain, 0), 0))
        carried = np.where(kept | (free & (gain > 0)), derivative, 0)
    return Derivatives(
        value,
        (rows.functionals * carried).sum(axis=1),
        np.concatenate([value[:, None][:, :0], *gaps], axis=1),
    )


def separate(rows: Rows, weights: tuple[Array, ...], slopes: Slopes) -> Array:
    """Return the largest a . J t for each row by intervals of gradients, in which each entry has
    its own worst slopes behind it.

    It is mostly far above ``largest``, but not always. It is never above the interval bound of the
    pair.
    """
    low, high = rows.functionals, rows.functionals
    for layer in range(len(weights), 0, -1):
        on, unstable, weight = slopes.on[layer], slopes.unstable[layer], weights[layer - 1]
        low = np.where(unstable, np.minimum(low, 0), np.where(on, low, 0))
        high = np.where(unstable, np.maximum(high, 0), np.where(on, high, 0))
        up, down = np.maximum(weight, 0), np.minimum(weight, 0)
        low, high = low @ up + high @ down, high @ up + low @ down
    shares = np.maximum(rows.along * low, rows.along * high)
    active = slopes.on[0] | (slopes.unstable[0] & (shares > 0))
    return np.asarray(np.where(active, shares, 0).sum(axis=1))
