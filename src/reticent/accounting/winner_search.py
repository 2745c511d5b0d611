"""The largest divergence that one moved vote can cause in the winner of a noisy vote, by branch and
bound over all margins.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from reticent.core.arrays import Array, Integers

TOLERANCE = 1e-4
"""Largest distance of the result above the largest excess of a pair, relative to that excess."""

_CELLS = 2**20
"""Approximate number of probabilities in one table."""

FINE_SIGMA = 150.0
"""Up to this sigma every pair is told apart. Beyond, blocks of 2, 4, ... pairs a side are bounded
as a whole. Their variation falls with sigma, so the bound stays as close.
"""

_FIRST = 32
"""Blocks to a side of the first division."""


@lru_cache(maxsize=1024)
def largest_winner_divergence(
    sigma: float, box: int, rate: float, orders: tuple[int, ...]
) -> Array:
    """Return the largest Rényi divergence of the winner among u + N1, v + N2 and 0 when a vote
    moves, over whole u, v up to ``box``.

    Let Z(u, v) be the distribution of the winner. The pairs are those of Z(u, v) and its mixture
    with Z(u + 1, v - 1), and of Z(u + 1, v - 1) and its mixture with Z(u, v), in both directions.
    Class 1 goes before class 2 where they tie. The third stands before, between or after them.

    **Why blocks can be bounded.** All three probabilities of Z are monotone in u and in v. The
    ratio of each in Z(u + 1, v - 1) to that in Z(u, v) falls with u and rises with v, because the
    noise is log-concave. Sums of products of log-concave terms are log-concave in u and in v, and
    totally positive of order 2 in both (Karlin 1968). The excess E[(P/Q)^a] - 1 is a sum over
    outcomes of q phi(ratio), where phi is convex and 0 at ratio 1. So over a rectangle each q and
    each phi is at most its largest value at two corners. Rectangles that cannot beat the largest
    excess found are dropped, the others are divided, down to single pairs.

    Args:
        sigma: parameter of the noise of each vote.
        box: largest margin in magnitude.
        rate: probability that the record takes part, in (0, 1].
        orders: increasing integers of at least 2.

    Returns:
        Shape (k,), read-only. It is at least the largest divergence, with an excess within
        ``TOLERANCE`` of the largest one, or beyond ``FINE_SIGMA`` within 1.5 % of it.

    References:
        - Karlin (1968), "Total positivity", Stanford University Press (total positivity).
        - The bound of blocks: docs/private-knn-accounting.md, theorem 2.
    """
    best = np.zeros(len(orders))
    bound = np.zeros(len(orders))
    for between in (False, True):
        search = _Search(sigma, box, rate, np.asarray(orders, dtype=np.float64), between)
        finest = 2 ** max(0, math.ceil(math.log2(sigma / FINE_SIGMA)))
        side = 2 ** max(0, math.ceil(math.log2((2 * box + 1) / _FIRST)))
        starts = np.arange(-box, box + 1, side)
        blocks = np.stack(np.meshgrid(starts, starts, indexing="ij"), axis=-1).reshape(-1, 2)
        while True:
            found, above = search.bounds(blocks, side)
            best = np.maximum(best, found.max(axis=1))
            # A block stays while one order may have its largest excess there. An infinite excess
            # cannot be beaten.
            with np.errstate(invalid="ignore"):
                open_ = ((above > (1 + TOLERANCE) * best[:, None]) & (side > finest)).any(axis=0)
            bound = np.maximum(bound, above[:, ~open_].max(axis=1, initial=0.0))
            if not open_.any():
                break
            side //= 2
            corners = side * np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
            blocks = (blocks[open_][:, None, :] + corners).reshape(-1, 2)
            blocks = blocks[(blocks <= box).all(axis=1)]
    result = np.log1p(np.maximum(best, bound)) / (np.asarray(orders) - 1)
    result.setflags(write=False)
    return np.asarray(result)


@dataclass(frozen=True, eq=False)
class _Search:
    sigma: float
    box: int
    rate: float
    orders: Array
    between: bool

    def bounds(self, blocks: Integers, side: int) -> tuple[Array, Array]:
        """Return the excess at one corner of every block, and a bound on the excess of all its
        pairs, each of shape (orders, blocks).
        """
        low = blocks
        high = np.minimum(blocks + side - 1, self.box)
        # Class 1 is likeliest and ratios are smallest at the first corner. Class 2 is likeliest and
        # ratios are largest at the second. The third class is likeliest at the third.
        corners = [np.stack([high[:, 0], low[:, 1]]), np.stack([low[:, 0], high[:, 1]]), low.T]
        first, second, third = self._at(corners) if side > 1 else 3 * self._at(corners[2:])
        found, above = np.zeros((2, self.orders.size, len(blocks)))
        for before, after in ((0, 1), (1, 0)):
            largest = np.stack([first[before, 0], second[before, 1], third[before, 2]])
            smaller, greater = (
                self._logs(first[after] / first[before]),
                self._logs(second[after] / second[before]),
            )
            exact = self._logs(third[after] / third[before]) if side > 1 else None
            for index, order in enumerate(self.orders):
                for power in (order, 1 - order):
                    excess = np.maximum(_excess(*smaller, power), _excess(*greater, power))
                    above[index] = np.maximum(above[index], (largest * excess).sum(axis=0))
                    if exact is not None:
                        here = (third[before] * _excess(*exact, power)).sum(axis=0)
                        found[index] = np.maximum(found[index], here)
        return (found if side > 1 else above), above

    def _logs(self, ratio: Array) -> tuple[Array, Array]:
        """Return log x and x - 1 for the mixture's ratio x = 1 + rate (ratio - 1)."""
        shift = self.rate * (ratio - 1)
        # Far below 1 the ratio's own digits count, and a difference from 1 would lose them.
        low = ratio < 0.5
        log_x = np.log1p(np.where(low, 0.0, shift))
        log_x[low] = np.log(1 - self.rate + self.rate * ratio[low])
        return log_x, shift

    def _at(self, corners: Sequence[Integers]) -> list[Array]:
        """Return Z(u, v) and Z(u + 1, v - 1), shape (2, 3, n), at corners (u, v) of shape (2, n)
        each.
        """
        u, v = np.concatenate(corners, axis=1)
        place = np.concatenate([u, u + 1]) + self.box
        margin = np.concatenate([u - v, u - v + 2])
        values = np.empty((3, place.size))
        # Points of one diagonal are looked up in one table, which costs the same for one point as
        # for all.
        order = np.argsort(margin, kind="stable")
        diagonals, starts = np.unique(margin[order], return_index=True)
        parts = np.split(order, starts[1:])
        step = max(1, _CELLS // (2 * self.box + 2))
        for start in range(0, diagonals.size, step):
            rows = diagonals[start : start + step]
            table = winner_distributions(self.sigma, self.box, rows, between=self.between)
            for row, part in enumerate(parts[start : start + step]):
                values[:, part] = table[:, row, place[part]]
        split = values.reshape(3, 2, len(corners), -1)
        return [split[:, :, index].swapaxes(0, 1) for index in range(len(corners))]


def _excess(log_x: Array, shift: Array, power: float) -> Array:
    """Return x**power - 1 - power (x - 1). The linear terms have mean zero and are taken off, so
    that nothing cancels in the sum.
    """
    with np.errstate(over="ignore"):
        return np.asarray(np.maximum(np.expm1(power * log_x) - power * shift, 0.0))


def winner_distributions(sigma: float, box: int, differences: Integers, *, between: bool) -> Array:
    """Return the probabilities that class 1, class 2 or another wins, where class 1 goes before
    class 2 in a tie.

    Args:
        sigma: parameter of the noise.
        box: largest vote difference.
        differences: shape (r,), integers u - v.
        between: whether the best other class stands between classes 1 and 2 in the order that
            breaks ties, or on one side of both. Class 2 must then exceed it, and class 1 only reach
            it.

    Returns:
        Shape (3, r, 2 box + 2), for u = -box .. box + 1 along the last axis. The best other class
        has 0 votes, noise included.
    """
    # Beyond these values a summand is below 1e-30 of the sum that it belongs to.
    far = box + math.ceil(12 * sigma)
    reach = 4 * box + far + 4
    distribution, below = _noise(sigma, reach)

    def mass(values: Integers) -> Array:
        return np.asarray(distribution[values + reach])

    def at_most(values: Integers) -> Array:
        return np.asarray(below[values + reach])

    need = int(between)
    u = np.arange(-box, box + 2)[None, :]
    v = u - differences[:, None]
    # Along a diagonal of constant u - v each probability grows by one summand per step.
    values = np.arange(0, far)[None, :]
    first = (mass(values - u[0, 0]) * at_most(values - v[:, :1])).sum(axis=1, keepdims=True)
    second = (mass(values + need - v[:, :1]) * at_most(values + need - 1 - u[0, 0])).sum(
        axis=1, keepdims=True
    )
    table = np.empty((3, *v.shape))
    table[0, :, :1], table[1, :, :1] = first, second
    np.multiply(mass(-1 - u[:, :-1]), at_most(-1 - v[:, :-1]), out=table[0, :, 1:])
    np.multiply(mass(need - 1 - v[:, :-1]), at_most(need - 2 - u[:, :-1]), out=table[1, :, 1:])
    np.multiply(at_most(-1 - u), at_most(need - 1 - v), out=table[2])
    np.cumsum(table[:2], axis=2, out=table[:2])
    return table


@lru_cache(maxsize=4)
def _noise(sigma: float, reach: int) -> tuple[Array, Array]:
    """Return the probabilities of N = v and of N <= v, for v = -reach .. reach."""
    distribution = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    distribution /= distribution.sum()
    return distribution, np.cumsum(distribution)
