"""The exact Rényi cost of noisy screening: one bit, "the largest vote plus Gaussian noise reaches the threshold"."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from dp_accounting import dp_event
from scipy import stats

from reticent.core.checks import count, positive
from reticent.core.errors import InvalidParameter

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ScreeningDpEvent(dp_event.DpEvent):
    """One screening bit: whether the largest vote of a query plus N(0, sigma^2) is at least the threshold.

    Attributes:
        fewest: smallest largest-vote that can occur; 0 is always safe.
        most: largest one, the number of neighbours that vote.
        threshold: the public threshold.
        sigma: standard deviation of the noise, in votes.
    """

    fewest: int
    most: int
    threshold: float
    sigma: float

    def __post_init__(self) -> None:
        count(self.fewest, name="fewest", minimum=0)
        count(self.most, name="most", minimum=self.fewest + 1)
        positive(self.sigma, name="sigma")


def screening_rdp(event: ScreeningDpEvent, orders: npt.ArrayLike, *, sampling_probability: float) -> Array:
    """Rényi divergence of the bit between two data sets that differ by adding or removing one record.

    One record changes the largest vote by at most 1, so the bit is Bernoulli with a pass probability that moves to that of a
    neighbouring count. The worst pair of counts is found by trying all. Under Poisson sampling the record takes part with
    probability g, and exp((a - 1) D_a) is jointly convex, so mixing over everybody else's sampling cannot exceed the worst fixed
    pair of P and (1 - g) P + g P'.

    Args:
        event: the screening step.
        orders: shape (k,), each above 1.
        sampling_probability: of Poisson sampling, in (0, 1]; 1 means no sampling.

    Returns:
        Shape (k,). Never above the Gaussian mechanism of the same sigma, of which the bit is post-processing.

    Reference: Zhu, Yu, Chandraker and Wang 2020 (Private-kNN), Theorem 1; the pairs stay within [fewest, most].

    Example:
        >>> step = ScreeningDpEvent(fewest=0, most=300, threshold=210, sigma=85)
        >>> float(screening_rdp(step, [2.0], sampling_probability=1.0)[0])
        8.8113...e-05
    """
    alphas = np.atleast_1d(np.asarray(orders, dtype=np.float64))
    rate = positive(sampling_probability, name="sampling_probability")
    if rate > 1:
        raise InvalidParameter(f"sampling_probability={sampling_probability!r}: expected a number in (0, 1]")
    counts = np.arange(event.fewest, event.most + 1)
    outcomes = np.stack(
        [
            stats.norm.logsf(event.threshold - counts, scale=event.sigma),
            stats.norm.logcdf(event.threshold - counts, scale=event.sigma),
        ]
    )
    base = np.concatenate([outcomes[:, :-1], outcomes[:, 1:]], axis=1)
    other = np.concatenate([outcomes[:, 1:], outcomes[:, :-1]], axis=1)
    mixed = other if rate == 1 else np.logaddexp(np.log1p(-rate) + base, np.log(rate) + other)
    return np.maximum(_worst(mixed, base, alphas), _worst(base, mixed, alphas))


def _worst(log_p: Array, log_q: Array, alphas: Array) -> Array:
    """Largest Rényi divergence over the pairs (columns), one per order."""
    # E_Q[(P/Q)^a] is 1 + a small number. Its excess over 1 is summed as expm1(a r) - a expm1(r), r = log(P/Q), whose second
    # term has mean zero: each summand is then non-negative, so that nothing cancels at the tiny divergences of one screening.
    ratio = log_p - log_q
    a = alphas[:, None, None]
    excess = (np.exp(log_q) * (np.expm1(a * ratio) - a * np.expm1(ratio))).sum(axis=1)
    return np.asarray(np.log1p(excess).max(axis=1) / (alphas - 1))
