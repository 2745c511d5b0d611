"""Composition of equal answers with a known law of losses, rounded up on a grid."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from reticent.accounting.composition import smallest_without
from reticent.core.arrays import Array

_FEWEST_CELLS = 2**12

_NEGLIGIBLE = 1e-12
"""Share of delta that may be moved to an infinite loss."""


@dataclass(frozen=True, eq=False)
class _Losses:
    """Distribution of the privacy loss on a grid.

    Attributes:
        step: width of the grid.
        first: index of the smallest loss.
        masses: shape (n,), probabilities of the losses (first + i) step.
        infinite: probability of an infinite loss.
    """

    step: float
    first: int
    masses: Array
    infinite: float

    def delta(self, epsilon: float) -> float:
        """Return the hockey-stick divergence at exp(``epsilon``)."""
        losses = self.step * (self.first + np.arange(self.masses.size))
        above = losses > epsilon
        return self.infinite + float(
            np.sum(self.masses[above] * -np.expm1(epsilon - losses[above]))
        )

    def plus(self, losses: Array, masses: Array, *, lower: float, upper: float) -> _Losses:
        """Return the distribution with an independent loss added, cut to [``lower``, ``upper``].

        A loss between two points of the grid is split between them, so that both its probability
        and its probability without the record stay the same. Merging the two undoes the split, so
        the pair of distributions before is a post-processing of the one after. Losses below
        ``lower`` are raised to it, and those above ``upper`` to infinity.
        """
        below = np.floor(losses / self.step).astype(np.int64)
        shares = np.clip(
            np.expm1((below + 1) * self.step - losses) / math.expm1(self.step), 0.0, 1.0
        )
        shifts = np.concatenate([below, below + 1])
        weights = np.concatenate([masses * shares, masses * (1 - shares)])
        start = int(shifts.min())
        total = np.zeros(self.masses.size + int(shifts.max()) - start)
        for shift, weight in zip((shifts - start).tolist(), weights.tolist(), strict=True):
            total[shift : shift + self.masses.size] += weight * self.masses
        first = self.first + start
        cut, end = math.floor(lower / self.step) - first, math.ceil(upper / self.step) - first + 1
        infinite = self.infinite
        if end < total.size:
            infinite += float(total[max(end, 0) :].sum())
            total = total[: max(end, 0)]
        cut = min(cut, total.size - 1)
        if cut > 0:
            total[cut : cut + 1] += total[:cut].sum()
            total, first = total[cut:], first + cut
        return _Losses(self.step, first, total, infinite)


def composed_epsilon(
    losses: Array, masses: Array, infinite: float, *, times: int, delta: float
) -> float:
    """Return the total epsilon of equal answers with one known law of losses, rounded up.

    Args:
        losses: losses of one answer, shape (k,).
        masses: their probabilities, shape (k,).
        infinite: probability of an infinite loss of one answer, below 1.
        times: number of answers, at least 1.
        delta: total delta, in (0, 1).

    Returns:
        Total epsilon, infinite where ``delta`` cannot be reached.
    """
    if -math.expm1(times * math.log1p(-infinite)) >= delta:
        return math.inf
    edge = float(np.abs(losses).max())
    z = math.sqrt(2 * math.log(4 * times / (_NEGLIGIBLE * delta)))
    reach = min(z * edge * math.sqrt(times), times * edge)
    step = 2 * reach / _FEWEST_CELLS / 4
    mean = float(losses @ masses)
    found = _Losses(step, 0, np.ones(1), 0.0)
    for done in range(1, times + 1):
        added = found.plus(losses, masses, lower=done * mean - reach, upper=done * mean + reach)
        # an infinite loss before, one that is cut off, or one now
        lost = added.infinite + infinite * (1 - found.infinite)
        found = _Losses(step, added.first, added.masses, min(1.0, lost))
    rounding = 1.0 + 1e-12 + 1e-14 * times

    slack = 4e-15 * times * edge

    def excess(epsilon: float) -> bool:
        return rounding * found.delta(max(0.0, epsilon - slack)) > delta

    return smallest_without(excess, times * edge)
