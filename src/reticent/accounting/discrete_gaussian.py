"""The discrete Gaussian distribution that releases draw: its tails, and its Rényi cost on a
Poisson sample.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from reticent.accounting.sampling import binomial_divergence
from reticent.core.arrays import Array, Integers
from reticent.core.checks import positive, probability
from reticent.core.errors import InvalidParameter

_REACH = 40.0
"""Standard deviations beyond which probability is below 1e-347, less than the smallest double."""


def log_tails(points: Integers, *, sigma: float) -> tuple[Array, Array]:
    """Return the log-probabilities of N >= m and of N < m for integers m, where P(N = v) is
    proportional to exp(-v**2 / (2 sigma**2)).

    Args:
        points: shape (n,), int64, at most 2**22 in magnitude.
        sigma: parameter of the distribution, above 0.

    Returns:
        Two arrays of shape (n,).

    Edge cases: both tails are summed from their far end in logarithms, so a tail of 1e-300 has full
    relative accuracy. The part beyond 40 sigma from the farthest point is left out, which changes
    no digit.

    Example:
        >>> above, below = log_tails(np.array([0, 1]), sigma=3.0)
        >>> bool(abs(np.exp(above[1]) - np.exp(below[0])) < 1e-15)
        True
    """
    sigma = positive(sigma, name="sigma")
    reach = int(np.abs(points).max(initial=0)) + math.ceil(_REACH * sigma) + 2
    if reach > 2**24:
        raise InvalidParameter(
            f"sigma={sigma!r}: expected distributions that reach at most 2**24; coarsen the "
            "grid of votes"
        )
    values = np.arange(-reach, reach + 1, dtype=np.float64)
    weights = -0.5 * (values / sigma) ** 2
    weights -= np.logaddexp.reduce(weights)
    above = np.logaddexp.accumulate(weights[::-1])[::-1]
    at = points + reach
    # N < m is -N > -m, so the lower tail is the upper one of a symmetric distribution, mirrored.
    return above[at], above[2 * reach + 1 - at]


def sampled_gaussian_rdp(
    orders: npt.ArrayLike, *, noise_multiplier: float, sampling_probability: float
) -> Array:
    """Return the Rényi divergence, in both directions, of continuous and of discrete Gaussian noise
    on a Poisson sample.

    At integer orders the closed form of the continuous distribution also holds for the discrete
    Gaussian, if it is shifted by integers. There E_Q[(P/Q)^j] is exactly exp(j (j - 1) |shift|^2 /
    (2 sigma^2)) for integer j, because the sum over the integers is that of the distribution moved
    by j times the shift. The larger direction is the one with the sampled distribution on top,
    because mirroring exchanges the two distributions.

    Args:
        orders: shape (k,), integers of at least 2.
        noise_multiplier: sigma over the l2 sensitivity, above 0.
        sampling_probability: in (0, 1], where 1 means no sampling.

    Returns:
        Shape (k,).

    Raises:
        InvalidParameter: an order that is not such an integer. In between, the closed form is not
            proved for discrete noise.

    Example:
        >>> float(sampled_gaussian_rdp([8], noise_multiplier=1.0, sampling_probability=0.01)[0])
        0.00089364...

    References:
        - Mironov, Talwar and Zhang (2019), "Rényi differential privacy of the sampled Gaussian
          mechanism", arXiv:1908.10530, section 3.3 and theorem 5.
        - Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy",
          arXiv:2004.00010, proposition 5.
    """
    alphas = np.atleast_1d(np.asarray(orders, dtype=np.float64))
    if not (np.all(alphas >= 2) and np.all(alphas == np.round(alphas))):
        raise InvalidParameter(
            "orders: expected integers of at least 2, for which discrete Gaussian noise has a "
            "closed form"
        )
    multiplier = positive(noise_multiplier, name="noise_multiplier")
    rate = positive(sampling_probability, name="sampling_probability")
    if rate >= 1:
        if rate > 1:
            raise InvalidParameter(
                f"sampling_probability={sampling_probability!r}: expected a number in (0, 1]"
            )
        return np.asarray(alphas / (2 * multiplier**2))
    rate = probability(rate, name="sampling_probability")
    return np.asarray([_sampled_order(int(a), multiplier, rate) for a in alphas])


@lru_cache(maxsize=65536)
def _sampled_order(order: int, multiplier: float, rate: float) -> float:
    # As in screening_rdp, only the excess over 1 is summed, so that nothing cancels.
    j = np.arange(2, order + 1, dtype=np.float64)
    exponent = j * (j - 1) / (2 * multiplier**2)
    return binomial_divergence(order, rate, exponent + np.log(-np.expm1(-exponent)))
