"""Optimal composition of answers that differ in (epsilon, delta), rounded up on a grid of
losses.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from reticent.accounting.composition import (
    SMALLEST_DELTA,
    binomial_weights,
    smallest_without,
    with_failures,
)
from reticent.core.arrays import Array
from reticent.core.checks import positive, probability

_CELLS = 2**18
_FEWEST_CELLS = 2**12
_WORK = 2**31
"""Most grid cells, and additions of one cell, that a composition takes. The grid is coarser for
very many different parts.
"""

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


def optimal_epsilon_of(parts: Sequence[tuple[float, float]], *, delta: float) -> float:
    """Return the optimal total epsilon at ``delta`` of answers that differ in (epsilon, delta),
    rounded up.

    Exact composition of unequal answers is #P-hard. Here equal answers are composed exactly, as
    binomial distributions of their privacy loss, and these are added on a grid, each loss split
    between two points of it. The result is an upper bound, a few millionths above the optimum or
    less.

    Args:
        parts: (epsilon, delta) of each answer, in any order. The *order* may be chosen adaptively,
            the values may not.
        delta: total delta, in [0, 1).

    Returns:
        Total epsilon, never above the sum, and infinite where the answers' own delta exceeds
        ``delta``.

    Edge cases: no parts cost 0. For delta below 1e-280 the result is the sum of epsilons.

    Example:
        >>> round(optimal_epsilon_of([(0.1, 0.0)] * 60 + [(0.2, 0.0)] * 20, delta=1e-5), 2)
        5.13

    Utility:
        A few millionths above the optimum, or less.

    Runtime:
        O(grid) for each distinct part, 40 ms for 80 answers of two kinds on one core
        (benchmarks/runtimes.py).

    References:
        - Murtagh and Vadhan (2016), "The complexity of computing the optimal composition of
          differential privacy", arXiv:1507.03113 (hardness).
        - Kairouz, Oh and Viswanath (2015), "The composition theorem for differential privacy",
          arXiv:1311.0776, theorem 3.3 (equal answers).
        - Doroshenko, Ghazi, Kamath, Kumar and Manurangsi (2022), "Connect the dots: tighter
          discrete approximations of privacy loss distributions", arXiv:2207.04380 (splitting losses
          between the points of a grid).

    See Also:
        reticent.accounting.optimal_epsilon: equal answers, exactly.
        reticent.accounting.smallest_epsilon: the best of three theorems.
    """
    counted = Counter(
        (positive(epsilon, name="epsilon"), probability(own, name="delta"))
        for epsilon, own in parts
    )
    delta = probability(delta, name="delta")
    if not counted:
        return 0.0
    basic = _basic(counted, delta)
    if delta < SMALLEST_DELTA:
        return basic
    log_kept = math.fsum(times * math.log1p(-own) for (_, own), times in counted.items())
    pure = _pure_delta(counted, delta)

    def excess(total: float) -> bool:
        return with_failures(pure(total), log_kept) > delta

    return min(
        basic,
        smallest_without(
            excess, math.fsum(times * epsilon for (epsilon, _), times in counted.items())
        ),
    )


def composed_epsilon(
    losses: Array, masses: Array, infinite: float, *, times: int, delta: float
) -> float:
    """Return the total epsilon of equal answers with one known law of losses, rounded up.

    Args:
        losses: losses of one answer, shape (k,).
        masses: their probabilities, shape (k,).
        infinite: probability of an infinite loss of one answer.
        times: number of answers, at least 1.
        delta: total delta, in (0, 1).

    Returns:
        Total epsilon, infinite where ``delta`` cannot be reached.
    """
    if 1 - (1 - infinite) ** times >= delta:
        return math.inf
    edge = float(np.abs(losses).max())
    z = math.sqrt(2 * math.log(4 * times / (_NEGLIGIBLE * delta)))
    reach = min(z * edge * math.sqrt(times), times * edge)
    step = 2 * reach / _FEWEST_CELLS / 4
    mean = float(losses @ masses)
    found = _Losses(step, 0, np.ones(1), 0.0)
    for done in range(1, times + 1):
        added = found.plus(losses, masses, lower=done * mean - reach, upper=done * mean + reach)
        # an infinite loss now, or before
        lost = 1 - (1 - infinite) * (1 - found.infinite) + added.infinite - found.infinite
        found = _Losses(step, added.first, added.masses, min(1.0, lost))
    rounding = 1.0 + 1e-12 + 1e-14 * times

    slack = 4e-15 * times * edge

    def excess(epsilon: float) -> bool:
        return rounding * found.delta(max(0.0, epsilon - slack)) > delta

    return smallest_without(excess, times * edge)


def _basic(counted: Counter[tuple[float, float]], delta: float) -> float:
    own = math.fsum(times * own for (_, own), times in counted.items())
    return (
        math.fsum(times * epsilon for (epsilon, _), times in counted.items())
        if own <= delta
        else math.inf
    )


def _pure_delta(counted: Counter[tuple[float, float]], delta: float) -> Callable[[float], float]:
    """Return delta of the answers without their failures as a function of total epsilon, rounded
    up.
    """
    groups: Counter[float] = Counter()
    for (epsilon, _), times in counted.items():
        groups[epsilon] += times
    # By Hoeffding's inequality the sum of the losses of any of the groups is farther than ``reach``
    # from its mean with a probability of at most 2 exp(-z^2 / 2), however they are cut off. The
    # probability that really lies there is added up, not assumed.
    z = math.sqrt(2 * math.log(4 * len(groups) / (_NEGLIGIBLE * delta)))
    most = math.fsum(times * epsilon for epsilon, times in groups.items())
    reach = z * math.sqrt(math.fsum(times * epsilon**2 for epsilon, times in groups.items()))
    atoms = {epsilon: _binomial_losses(epsilon, times, z) for epsilon, times in groups.items()}
    work = 2 * sum(losses.size for losses, _, _ in atoms.values())
    step = 2 * min(reach, most) / min(_CELLS, max(_FEWEST_CELLS, _WORK // work))
    found, mean = _Losses(step, 0, np.ones(1), 0.0), 0.0
    for epsilon in sorted(groups):
        losses, masses, infinite = atoms[epsilon]
        mean += groups[epsilon] * epsilon * math.tanh(epsilon / 2)
        added = found.plus(losses, masses, lower=mean - reach, upper=mean + reach)
        found = _Losses(step, added.first, added.masses, min(1.0, added.infinite + infinite))
    # The errors of logarithms of binomial coefficients, as in optimal composition of equal answers,
    # and one rounding a sum.
    rounding = 1.0 + 1e-12 + 1e-14 * sum(groups.values()) + 1e-15 * work
    slack = 4e-15 * most

    def pure(total: float) -> float:
        return rounding * found.delta(max(0.0, total - slack))

    return pure


def _binomial_losses(epsilon: float, times: int, z: float) -> tuple[Array, Array, float]:
    """Return the losses of ``times`` equal pure answers, their probabilities, and the probability
    of losses too large and improbable to be kept.
    """
    lies = np.arange(times + 1)
    losses = np.asarray((times - 2.0 * lies) * epsilon, dtype=np.float64)
    lie = 1.0 / (1.0 + math.exp(min(epsilon, 700.0)))
    masses = binomial_weights(times, lie)
    mean, reach = times * epsilon * math.tanh(epsilon / 2), z * epsilon * math.sqrt(times)
    high, low = losses > mean + reach, losses < mean - reach
    infinite = float(masses[high].sum())
    kept = ~(high | low)
    masses[np.flatnonzero(kept)[-1]] += masses[low].sum()
    return losses[kept], masses[kept], infinite
