"""The Rényi cost of a noisy label: only the winner of a vote is released, never the votes.

The votes with their noise would be a Gaussian mechanism of sensitivity sqrt(2). The label is post-processing of it, and costs
about 0.64 of it at the orders that matter; one sign would cost 2/pi of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from reticent.accounting.discrete_gaussian import log_tails, sampled_gaussian_rdp
from reticent.accounting.events import Cost
from reticent.core.checks import positive

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

SMALLEST_SIGMA, LARGEST_SIGMA = 1.0, 100.0
"""Outside, the Gaussian cost of the votes is used alone: below, noise hides nothing; above, there are too many pairs to try."""

_REACH = 8.0
_SPARE = 3
"""Vote differences are tried up to _REACH sigma + _SPARE."""

_ROWS = 64


@dataclass(frozen=True)
class NoisyArgmaxDpEvent(Cost):
    """One label: the class with the most votes after discrete Gaussian noise on every vote; any number of classes.

    One record more or less moves at most one vote from one class to another. Ties go by an order of the classes that is fixed, or
    random but drawn without looking at the data.

    Attributes:
        sigma: parameter of the noise of each vote, in votes.
    """

    sigma: float

    def __post_init__(self) -> None:
        positive(self.sigma, name="sigma")

    @property
    def slack(self) -> float:
        """Total-variation distance, at most, between the laws that ``noisy_argmax_rdp`` bounds and the real ones, see there."""
        if not SMALLEST_SIGMA <= self.sigma <= LARGEST_SIGMA:
            return 0.0
        return 3.0 * math.exp(float(log_tails(np.array([_box(self.sigma) - _SPARE]), sigma=self.sigma)[0][0]))


def noisy_argmax_rdp(event: NoisyArgmaxDpEvent, orders: npt.ArrayLike, *, sampling_probability: float) -> Array:
    """Bound on the Rényi divergence of a noisy label between two data sets that differ by adding or removing one record.

    Say the record moves a vote from class 2 to class 1. Tell the observer the largest noisy vote M of all other classes, and
    whose it is; neither depends on the record. What is left is which of 1, 2 and "another" wins, a law on three outcomes that
    depends only on u = n_1 - M and v = n_2 - M. So the divergence is at most the largest one over all integers u, v of the pair
    (u, v) and (u + 1, v - 1), in both directions, for each way in which the order of the classes breaks ties. Sampling mixes
    each pair as in ``screening_rdp``. All of them are tried. The result is the smaller of this and the Gaussian cost of the
    votes.

    **Guarantee.** Every label's law is within total variation ``event.slack`` of one whose divergence is at most the returned
    one, at both neighbours: differences beyond 8 sigma are replaced by nearer ones of nearly the same law. Whoever turns the
    divergences of A labels into (epsilon, delta) adds A (1 + exp(epsilon)) slack to delta. Slack is below 2e-14.

    Args:
        event: the label.
        orders: shape (k,), integers of at least 2.
        sampling_probability: of Poisson sampling, in (0, 1]; 1 means no sampling.

    Returns:
        Shape (k,).

    Raises:
        InvalidParameter: a parameter out of its range.

    Reference: own; docs/private-knn-accounting.md, theorem 3, has the proof.

    Example:
        >>> cost = noisy_argmax_rdp(NoisyArgmaxDpEvent(sigma=20.0), [8], sampling_probability=1.0)
        >>> round(float(cost[0]) / (8 * 2 / (2 * 20.0**2)), 3)
        0.643
    """
    votes = sampled_gaussian_rdp(orders, noise_multiplier=event.sigma / math.sqrt(2), sampling_probability=sampling_probability)
    if not SMALLEST_SIGMA <= event.sigma <= LARGEST_SIGMA:
        return votes
    alphas, rate = np.atleast_1d(np.asarray(orders, dtype=np.float64)), float(sampling_probability)
    labels: dict[float, float] = {}
    left = sorted(set(alphas.tolist()))
    while left:
        group = tuple(order for order in left if 2 * order >= left[-1])
        labels.update(zip(group, _label_rdp(event.sigma, rate, group), strict=True))
        left = left[: -len(group)]
    return np.minimum(votes, [labels[order] for order in alphas.tolist()])


@lru_cache(maxsize=1024)
def _label_rdp(sigma: float, rate: float, orders: tuple[float, ...]) -> Array:
    """Largest divergence over all pairs at increasing ``orders``, shape (k,)."""
    # The excess of a pair grows with the order. One look at all pairs at the largest order tells which of them can be the worst
    # at a smaller one; equal votes, tried first, give every order something to beat.
    box = _box(sigma)
    worst = np.zeros(len(orders))
    rows = [np.arange(-2, 1), *np.split(np.arange(-2 * box, 2 * box + 1), range(_ROWS, 4 * box + 1, _ROWS))]
    for between in (False, True):
        for part in rows:
            for base, moved in _pairs(sigma, box, part, between):
                top = _excess(base, moved, orders[-1], rate)
                for index, order in enumerate(orders[:-1]):
                    hopeful = top > worst[index]
                    if hopeful.any():
                        worst[index] = max(worst[index], _excess(base[:, hopeful], moved[:, hopeful], order, rate).max())
                worst[-1] = max(worst[-1], top.max())
    return np.asarray(np.log1p(worst) / (np.asarray(orders) - 1))


def _excess(base: Array, moved: Array, order: float, rate: float) -> Array:
    """E[(P/Q)^order] - 1 of each pair, the larger of both directions, of ``base`` and its mixture with ``moved``; shape (n,)."""
    # Linear terms, which have mean zero, are taken off each summand so that nothing cancels; see ``largest_divergence``.
    shift = rate * (moved / base - 1)
    log_ratio = np.log1p(shift)
    with np.errstate(over="ignore"):
        up = (base * (np.expm1(order * log_ratio) - order * shift)).sum(axis=0)
        down = (base * (np.expm1((1 - order) * log_ratio) - (1 - order) * shift)).sum(axis=0)
    return np.asarray(np.maximum(up, down))


def _box(sigma: float) -> int:
    return math.ceil(_REACH * sigma) + _SPARE


def _pairs(sigma: float, box: int, differences: Integers, between: bool) -> list[tuple[Array, Array]]:
    """Laws before and after a vote moves from class 2 to class 1, and the other way round, each pair of shape (3, n)."""
    laws = _label_laws(sigma, box, np.arange(differences[0], differences[-1] + 3), between)
    inside = np.abs(np.arange(-box, box + 1)[None, :] - differences[:, None]) <= box
    before, after = laws[:, :-2, :-1][:, inside], laws[:, 2:, 1:][:, inside]
    return [(before, after), (after, before)]


def _label_laws(sigma: float, box: int, differences: Integers, between: bool) -> Array:
    """Probabilities that class 1, class 2 or another wins, class 1 going before class 2 where they tie.

    Args:
        sigma: parameter of the noise.
        box: largest vote difference.
        differences: shape (r,), integers u - v.
        between: whether the best other class stands between classes 1 and 2 in the order that breaks ties, or on one side of
            both. Class 2 must then exceed it, and class 1 only reach it.

    Returns:
        Shape (3, r, 2 box + 2), for u = -box .. box + 1 along the last axis; the best other class has 0 votes, noise included.
    """
    reach = 3 * box + math.ceil(40 * sigma)
    law = np.exp(-0.5 * (np.arange(-2 * reach, 2 * reach + 1) / sigma) ** 2)
    law /= law.sum()
    below = np.cumsum(law)

    def mass(values: Integers) -> Array:
        return np.asarray(law[values + 2 * reach])

    def at_most(values: Integers) -> Array:
        return np.asarray(below[values + 2 * reach])

    need = int(between)
    u = np.arange(-box, box + 2)[None, :]
    v = u - differences[:, None]
    # Along a diagonal of constant u - v each probability grows by one summand per step.
    values = np.arange(0, box + math.ceil(40 * sigma))[None, :]
    first = (mass(values - u[0, 0]) * at_most(values - v[:, :1])).sum(axis=1, keepdims=True)
    second = (mass(values + need - v[:, :1]) * at_most(values + need - 1 - u[0, 0])).sum(axis=1, keepdims=True)
    wins = np.concatenate([first, mass(-1 - u[:, :-1]) * at_most(-1 - v[:, :-1])], axis=1).cumsum(axis=1)
    loses = np.concatenate([second, mass(need - 1 - v[:, :-1]) * at_most(need - 2 - u[:, :-1])], axis=1).cumsum(axis=1)
    return np.stack([wins, loses, at_most(-1 - u) * at_most(need - 1 - v)])
