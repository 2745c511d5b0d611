"""The exact Rényi cost of noisy screening: one bit, "the largest vote plus Gaussian noise
reaches the threshold".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

from reticent.accounting.discrete_gaussian import log_tails
from reticent.accounting.events import Cost
from reticent.core.arrays import Array
from reticent.core.checks import count, positive
from reticent.core.errors import InvalidParameter


@dataclass(frozen=True)
class ScreeningDpEvent(Cost):
    """One screening bit, which says whether the largest vote of a query plus Gaussian noise is at
    least the threshold.

    Attributes:
        fewest: smallest value of the largest vote. 0 is always safe, and needed where fewer than
            ``most`` neighbours may vote.
        most: largest value of the largest vote, the number of neighbours that vote.
        threshold: the public threshold.
        sigma: parameter of the noise, in votes.
        discrete: whether the noise is the discrete Gaussian on the integers, which releases
            draw, or the continuous one.
    """

    fewest: int
    most: int
    threshold: float
    sigma: float
    discrete: bool = False

    def __post_init__(self) -> None:
        count(self.fewest, name="fewest", minimum=0)
        count(self.most, name="most", minimum=self.fewest + 1)
        positive(self.sigma, name="sigma")
        if not math.isfinite(self.threshold):
            raise InvalidParameter(
                f"threshold={self.threshold!r}: expected a finite number of votes"
            )


def screening_rdp(
    event: ScreeningDpEvent, orders: npt.ArrayLike, *, sampling_probability: float
) -> Array:
    """Return the Rényi divergence of the bit between two data sets that differ by adding or
    removing one record.

    One record changes the largest vote by at most 1, so the bit is Bernoulli with a pass
    probability that moves to that of a neighbouring count. The worst pair of counts is found by
    trying all. Under Poisson sampling the record takes part with probability g, and exp((a - 1)
    D_a) is jointly convex. So mixing over everybody else's sampling cannot exceed the worst fixed
    pair of P and (1 - g) P + g P'.

    Args:
        event: the screening step.
        orders: shape (k,), each above 1.
        sampling_probability: rate of the Poisson sampling, in (0, 1], where 1 means no sampling.

    Returns:
        Shape (k,). Never above the Gaussian mechanism of the same sigma, of which the bit is
        post-processing.

    Edge cases: pass probabilities are kept as logarithms, so a threshold far outside the counts is
    exact too.

    **Differs from the paper**: it does not use the paper's shortcut of trying only counts at the
    threshold and at ``most``. The shortcut misses the worst pair by 8 % at order 80 of the paper's
    own setting.

    Example:
        >>> step = ScreeningDpEvent(fewest=0, most=300, threshold=210, sigma=85)
        >>> float(screening_rdp(step, [2.0], sampling_probability=1.0)[0])
        8.8113...e-05

    Utility:
        The largest divergence over all pairs of counts. No smaller bound holds for the bit.

    Runtime:
        O(neighbours times orders), 6 ms for 300 neighbours and 63 orders.

    References:
        - Zhu, Yu, Chandraker and Wang (2020), "Private-kNN: practical differential privacy for
          computer vision", doi:10.1109/CVPR42600.2020.01187, supplement, theorem 1 (here the pairs
          stay within [fewest, most]).
        - Mironov (2017), "Rényi differential privacy", arXiv:1702.07476, proposition 5 (an answer
          of two outcomes).

    See Also:
        reticent.accounting.noisy_argmax_rdp: the other step.
        reticent.mechanisms.NoisyScreening: the mechanism.
    """
    alphas = np.atleast_1d(np.asarray(orders, dtype=np.float64))
    base, mixed = screening_pairs(event, sampling_probability=sampling_probability)
    return np.maximum(
        largest_divergence(mixed, base, alphas), largest_divergence(base, mixed, alphas)
    )


def screening_pairs(event: ScreeningDpEvent, *, sampling_probability: float) -> tuple[Array, Array]:
    """Return the distributions of the bit without and with one more record, for every pair of
    neighbouring counts.

    Args:
        event: the screening step.
        sampling_probability: rate of the Poisson sampling, in (0, 1].

    Returns:
        Two arrays, shape (2, pairs): log-probabilities of passing and of failing.

    Raises:
        InvalidParameter: ``sampling_probability`` out of range.
    """
    rate = positive(sampling_probability, name="sampling_probability")
    if rate > 1:
        raise InvalidParameter(
            f"sampling_probability={sampling_probability!r}: expected a number in (0, 1]"
        )
    outcomes = _outcomes(event)
    base = np.concatenate([outcomes[:, :-1], outcomes[:, 1:]], axis=1)
    other = np.concatenate([outcomes[:, 1:], outcomes[:, :-1]], axis=1)
    mixed = other if rate == 1 else np.logaddexp(np.log1p(-rate) + base, np.log(rate) + other)
    return base, mixed


def pass_ratio(event: ScreeningDpEvent) -> float:
    """Return the largest factor by which the probability to pass can change between neighbouring
    counts.

    Example:
        >>> round(pass_ratio(ScreeningDpEvent(fewest=0, most=300, threshold=180, sigma=75)), 6)
        1.037013
    """
    return float(np.exp(np.abs(np.diff(_outcomes(event)[0])).max()))


def largest_divergence(log_p: Array, log_q: Array, alphas: Array) -> Array:
    """Return the largest Rényi divergence D_a(P || Q) over pairs of distributions on few outcomes,
    one per order.

    Args:
        log_p: shape (outcomes, pairs), log-probabilities.
        log_q: log-probabilities of the other distribution, same shape.
        alphas: shape (k,), each above 1.

    Returns:
        Shape (k,).
    """
    # E_Q[(P/Q)^a] is 1 + a small number. Its excess over 1 is summed as q (expm1(a r) - a
    # expm1(r)), r = log(P/Q), whose second term has mean zero. Each summand is then non-negative,
    # so that nothing cancels at the tiny divergences of one screening. Where a r is large the
    # exponentials could overflow. There the same summand is p^a q^(1 - a) + (a - 1) q - a p.
    ratio = log_p - log_q
    p, q = np.exp(log_p), np.exp(log_q)
    worst = np.empty(alphas.size)
    for index, a in enumerate(alphas):
        log_moments = a * log_p + (1 - a) * log_q
        plain = np.logaddexp.reduce(log_moments, axis=0)
        small = np.minimum(ratio, 1 / a)
        summands = np.where(
            ratio > 1 / a,
            np.exp(np.minimum(log_moments, 1.0)) + (a - 1) * q - a * p,
            q * (np.expm1(a * small) - a * np.expm1(small)),
        )
        worst[index] = np.where(plain < 0.1, np.log1p(summands.sum(axis=0)), plain).max() / (a - 1)
    return worst


@lru_cache(maxsize=64)
def _outcomes(event: ScreeningDpEvent) -> Array:
    """Return the log-probabilities to pass and to fail, shape (2, counts), read-only."""
    gaps = event.threshold - np.arange(event.fewest, event.most + 1)
    if event.discrete:
        at_least, below = log_tails(np.ceil(gaps).astype(np.int64), sigma=event.sigma)
        outcomes = np.stack([at_least, below])
    else:
        outcomes = special.log_ndtr(np.stack([-gaps, gaps]) / event.sigma)
    outcomes.setflags(write=False)
    return outcomes
