"""A diagnostic for whoever may see the private data: the cost that the votes that really occurred
would have had.

These numbers depend on private data through more than the releases, so they are themselves private.
Nothing here can reach a guarantee, a card, an event or a ledger. Every function asks its caller to
state this.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import special

from reticent.accounting.screening import ScreeningDpEvent, largest_divergence, screening_pairs
from reticent.core.arrays import Array
from reticent.core.checks import finite_array, positive
from reticent.core.errors import InvalidInput, InvalidParameter


def data_dependent_label_rdp(
    votes: npt.ArrayLike, orders: npt.ArrayLike, *, sigma: float, private: bool
) -> Array:
    """Return the Rényi divergence of a noisy label at these very votes, without sampling. *Private:
    never to be published.*

    Args:
        votes: the votes of one query, shape (classes,), not negative.
        orders: shape (k,), each above 1.
        sigma: Gaussian noise of every vote.
        private: True, by which the caller states that the result stays with those who may see the
            data.

    Returns:
        Shape (k,), never above the cost orders / sigma**2 that holds for all data.

    Raises:
        InvalidParameter: ``private`` is not True, or another parameter is out of its range.
        InvalidInput: votes of another shape or negative.

    Edge cases: its meaning on a subsample is an open problem, and it is not offered there. The
    divergence at the sample that happened to be drawn is not the one at other samples.

    Example:
        >>> cost = data_dependent_label_rdp([280, 10, 5, 3, 2], [2.0], sigma=40.0, private=True)
        >>> bool(cost[0] < 2.0 / 40.0**2)
        True

    References:
        - Papernot et al. (2018), "Scalable private learning with PATE", arXiv:1802.08908, theorem 6
          with the orders of proposition 10.

    See Also:
        reticent.accounting.private_knn_total: the total that holds for all data.
    """
    _acknowledged(private)
    counts = _votes(votes)
    sigma = positive(sigma, name="sigma")
    alphas = np.atleast_1d(np.asarray(orders, dtype=np.float64))
    cost = alphas / sigma**2
    log_q = log_probability_of_another(counts, sigma=sigma)
    second = sigma * math.sqrt(-log_q)
    if second <= 1:
        return cost
    first = second + 1
    room = (second - 1) * second / sigma**2 - second * (
        math.log1p(1 / (first - 1)) + math.log1p(1 / (second - 1))
    )
    if log_q > room or -log_q <= second / sigma**2:
        return cost
    log_right = math.log(-math.expm1(log_q))
    usual = log_right - math.log(-math.expm1((log_q + second / sigma**2) * (1 - 1 / second)))
    unusual = first / sigma**2 - log_q / (first - 1)
    better = np.logaddexp(log_right + (alphas - 1) * usual, log_q + (alphas - 1) * unusual) / (
        alphas - 1
    )
    return np.where(alphas < first, np.minimum(cost, better), cost)


def data_dependent_screening_rdp(
    votes: npt.ArrayLike, orders: npt.ArrayLike, *, threshold: float, sigma: float, private: bool
) -> Array:
    """Return the Rényi divergence of a screening bit at these very votes, without sampling.
    *Private: never to be published.*

    Args:
        votes: the votes of one query, shape (classes,), whole numbers, not negative.
        orders: shape (k,), each above 1.
        threshold: votes that the noisy largest vote must reach.
        sigma: Gaussian noise of the largest vote.
        private: True, as for ``data_dependent_label_rdp``.

    Returns:
        Shape (k,), the larger divergence of the bit from that at a largest vote of one more or one
        less.

    Raises:
        InvalidParameter: ``private`` is not True, or another parameter is out of its range.
        InvalidInput: votes of another shape or negative.

    References:
        - Zhu, Yu, Chandraker and Wang (2020), "Private-kNN: practical differential privacy for
          computer vision", doi:10.1109/CVPR42600.2020.01187, appendix E.

    See Also:
        reticent.accounting.private_knn_total: the total that holds for all data.
    """
    _acknowledged(private)
    most = round(float(_votes(votes).max()))
    alphas = np.atleast_1d(np.asarray(orders, dtype=np.float64))
    # The pairs of two neighbouring counts are (lower, higher) and then (higher, lower).
    base, other = screening_pairs(
        ScreeningDpEvent(most, most + 1, threshold, sigma), sampling_probability=1.0
    )
    cost = largest_divergence(base[:, :1], other[:, :1], alphas)
    if most > 0:
        base, other = screening_pairs(
            ScreeningDpEvent(most - 1, most, threshold, sigma), sampling_probability=1.0
        )
        cost = np.maximum(cost, largest_divergence(base[:, 1:], other[:, 1:], alphas))
    return cost


def log_probability_of_another(votes: npt.ArrayLike, *, sigma: float) -> float:
    """Return the logarithm of a bound on the probability that noise makes another class win than
    the one with the most votes.

    Example:
        >>> round(log_probability_of_another([150, 150], sigma=40.0), 3)
        -0.693
    """
    counts = np.sort(_votes(votes))
    losses = special.log_ndtr(
        -(counts[-1] - counts[:-1]) / (math.sqrt(2) * positive(sigma, name="sigma"))
    )
    return float(min(special.logsumexp(losses), math.log1p(-1 / counts.size)))


def _votes(votes: npt.ArrayLike) -> Array:
    counts = finite_array(votes, name="votes", ndim=1)
    if counts.size < 2 or counts.min() < 0:
        raise InvalidInput("votes: expected at least two classes and no negative number")
    return counts


def _acknowledged(private: bool) -> None:
    if private is not True:
        raise InvalidParameter(
            f"private={private!r}: expected True, by which you state that this number, which "
            "depends on private data, "
            "is not published, booked or put on a card"
        )
