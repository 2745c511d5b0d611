"""Bounds on the expected positive part of a sum of independent draws. The hockey-stick divergence
of a multiset of reports has this form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from reticent.core.arrays import Array, Integers

_REACH = 14.0
"""Standard deviations on either side of the tilted mean that the grid covers. The rest is bounded,
not assumed away.
"""

_CELLS = (2**12, 2**13, 2**14, 2**15, 2**16, 2**17, 2**18, 2**19, 2**20)
"""Sizes of the grid to choose from."""

_ULP = 2.0**-50
"""Relative error of a few operations on doubles."""

_STEEPER = np.geomspace(0.25, 64.0, 25)
"""Tilts that tail bounds try, in units of one over the standard deviation."""


@dataclass(frozen=True, eq=False)
class _Steps:
    """One draw on a grid: with chance ``masses[i]`` it adds ``places[i]`` cells, otherwise 0.

    Attributes:
        places: shape (k,), whole numbers.
        masses: shape (k,), chances whose sum is at most 1.
        cell: width of a cell.
        draws: number of independent draws.
    """

    places: Integers
    masses: Array
    cell: float
    draws: int

    def log_moment(self, tilt: float) -> float:
        """Return log E[exp(tilt S)], rounded up."""
        grown = np.expm1(np.minimum(tilt * self.cell * self.places, 700.0))
        error = _ULP * float(self.masses @ np.abs(grown))
        return self.draws * (math.log1p(float(self.masses @ grown)) + error)


def upper_positive_part(values: Array, chances: Array, draws: int, *, share: float = 1e-3) -> float:
    """Return an upper bound of E[max(0, S)] for a sum S of independent draws.

    *Why it is a bound.* A value between two points of the grid is replaced by a draw of one of the
    two with the same mean. By Jensen's inequality that can only raise the expectation of a convex
    function of the sum. The law of the sum on the grid is found by a Fourier transform of the law
    that is tilted until its mean is near 0, so that small expectations keep their digits. Mass that
    leaves the grid above is bounded by Chernoff's inequality. Mass that leaves it below comes back
    above, which can only add. The transform's rounding error is bounded and added.

    Args:
        values: values that one draw may add, shape (k,).
        chances: chance of each value, shape (k,), with a sum of at most 1. A draw adds 0 otherwise.
        draws: number of draws, at least 1.
        share: variance that the grid may add, as a share of the sum's own.

    Edge cases: 0 where no sum is positive.
    """
    if float(values.max(initial=0.0)) <= 0:
        return 0.0
    tilt, deviation = _tilt(values, chances, draws)
    low, high = _window(values, draws, deviation)
    cells = _cells(high - low, float(chances.sum()) * draws, deviation, share)
    cell = (high - low) / cells
    places, masses = _split(values / cell, chances)
    steps = _Steps(places, masses, cell, draws)
    law, growth, error = _tilted_law(steps, tilt, cells)
    bottom = math.floor(low / cell)
    sums = (np.arange(cells) - bottom) % cells + bottom
    positive = sums > 0
    worth = sums[positive] * cell
    weights = worth * np.exp(-tilt * worth)
    inside = float(weights @ law[positive]) + error * float(weights.sum())
    top = (bottom + cells - 1) * cell
    tail = _upper_tail(steps, tilt, deviation, top)
    scale = math.exp(min(growth + draws * _ULP, 700.0))
    return scale * inside * (1 + 2.0**-30) + tail


def _tilt(values: Array, chances: Array, draws: int) -> tuple[float, float]:
    """Return the tilt at which the sum has mean 0, and its deviation there.

    There is no tilt where the mean is not below 0 by itself.
    """

    def moments(tilt: float) -> tuple[float, float]:
        grown = chances * np.exp(np.minimum(tilt * values, 700.0))
        total = 1.0 + float(chances @ np.expm1(np.minimum(tilt * values, 700.0)))
        mean = float(grown @ values) / total
        return draws * mean, draws * max(float(grown @ values**2) / total - mean**2, 0.0)

    low, high = 0.0, 1.0 / float(np.abs(values).max())
    if moments(0.0)[0] >= 0:
        high = 0.0
    else:
        while moments(high)[0] < 0 and high * float(values.max()) < 600.0:
            low, high = high, 2 * high
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if moments(middle)[0] < 0 else (low, middle)
    return high, math.sqrt(moments(high)[1])


def _window(values: Array, draws: int, deviation: float) -> tuple[float, float]:
    """Return the ends of the sums that the grid covers."""
    bottom = draws * min(0.0, float(values.min()))
    top = draws * max(0.0, float(values.max()))
    largest = float(np.abs(values).max())
    reach = _REACH * deviation + 4 * largest
    low, high = max(bottom, -reach), min(top, reach)
    # a grid that ends at the ends of the range holds its points too
    slack = 2.0**-6 * (high - low)
    return low - slack, high + slack


def _cells(width: float, drawn: float, deviation: float, share: float) -> int:
    """Return the smallest grid that adds at most ``share`` of the variance."""
    for cells in _CELLS:
        if drawn * (width / cells) ** 2 / 4 <= share * deviation**2:
            return cells
    return _CELLS[-1]


def _split(places: Array, chances: Array) -> tuple[Integers, Array]:
    """Return masses on whole places with the mean of each place, rounded up, equal places
    joined.
    """
    below = np.floor(places)
    above = np.minimum(places - below + 2.0**-36, 1.0)
    both = np.concatenate([below, below + 1]).astype(np.int64)
    masses = np.concatenate([chances * (1 - above), chances * above])
    joined, index = np.unique(both, return_inverse=True)
    total = np.zeros(joined.size)
    np.add.at(total, index, masses)
    kept = total > 0
    return joined[kept], total[kept]


def _tilted_law(steps: _Steps, tilt: float, cells: int) -> tuple[Array, float, float]:
    """Return the tilted law of the sum modulo the grid, the log of the tilt's divisor, and a bound
    on the error of each chance.
    """
    grown = steps.masses * np.exp(np.minimum(tilt * steps.cell * steps.places, 700.0))
    excess = float(steps.masses @ np.expm1(np.minimum(tilt * steps.cell * steps.places, 700.0)))
    masses = grown / (1.0 + excess)
    # Angles are reduced as whole numbers, so that they keep their digits however far a step goes.
    frequencies = np.arange(cells // 2 + 1)
    angles = 2 * np.pi * np.arange(cells) / cells
    sines, versines = np.sin(angles), -2 * np.sin(angles / 2) ** 2
    real, imaginary = np.zeros(frequencies.size), np.zeros(frequencies.size)
    for place, mass in zip(steps.places.tolist(), masses.tolist(), strict=True):
        at = frequencies * (place % cells) % cells
        real += mass * versines[at]
        imaginary += mass * sines[at]
    modulus = 0.5 * np.log1p(np.maximum(real * (2 + real) + imaginary**2, -1.0 + 1e-300))
    logs = steps.draws * (modulus + 1j * np.arctan2(imaginary, 1 + real))
    transform = np.exp(logs)
    law = np.fft.irfft(transform.conj(), cells)
    sizes = np.abs(transform)
    rounding = 16 * _ULP * (1 + np.abs(logs)) + math.log2(cells) * _ULP
    error = 2.0 / cells * float(sizes @ rounding)
    return np.maximum(law, 0.0), steps.log_moment(tilt), error


def _upper_tail(steps: _Steps, tilt: float, deviation: float, top: float) -> float:
    """Bound E[S 1{S > top}] by Chernoff's inequality."""
    if top >= steps.draws * steps.cell * max(0, int(steps.places.max())):
        return 0.0
    # s <= (top + 1/t) exp(t (s - top)) for every s >= top
    steeper = tilt + _STEEPER / max(deviation, steps.cell)
    logs = [
        math.log(max(top, 0.0) + 1 / each) + steps.log_moment(each) - each * top
        for each in steeper.tolist()
    ]
    return math.exp(min(*logs, 700.0))
