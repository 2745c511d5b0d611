"""The Rényi cost of a noisy label, where only the winner of a vote is released and never the votes.

The votes with their noise would be a Gaussian mechanism of sensitivity sqrt(2). The label is
post-processing of it, and costs about 0.64 of it at the orders that matter. One sign would cost
2/pi of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reticent.accounting.approximate_rdp import ApproximateRdp
from reticent.accounting.discrete_gaussian import log_tails, sampled_gaussian_rdp
from reticent.accounting.events import Cost
from reticent.accounting.winner_search import FINE_SIGMA, largest_winner_divergence
from reticent.core.checks import positive

SMALLEST_SIGMA, LARGEST_SIGMA = 0.5, 1200.0
"""Below, noise hides so little that the noisy votes are charged. Above, a search takes long, so the
cost at ``LARGEST_SIGMA`` stands in until the noisy votes cost less.
"""

_REACH = 12.0
_SPARE = 3
"""Margins are tried up to _REACH sigma + _SPARE."""

_COARSER = 1.008
"""Just beyond a sigma from which the search tells fewer pairs apart, the charge at that sigma is
the smaller one.
"""

_APART = 9.0
_SPLIT = 1e-60
"""From this difference of sigma**2 on, a discrete Gaussian is a narrower one plus another, to a
relative 1e-70 and so certainly to a total variation of 1e-60."""

_ROUNDING = 1e-9
"""Added to every excess, relative to it: sums of positive terms, each some 1e-13 off."""


@dataclass(frozen=True)
class NoisyArgmaxDpEvent(Cost):
    """One label: the class with the most votes after discrete Gaussian noise on every vote, for any
    number of classes.

    One record more or less moves at most one vote from one class to another. Ties go by an order of
    the classes that is fixed, or drawn at random without looking at the data.

    Attributes:
        sigma: parameter of the noise of each vote, in votes.
    """

    sigma: float

    def __post_init__(self) -> None:
        positive(self.sigma, name="sigma")


def noisy_argmax_rdp(
    event: NoisyArgmaxDpEvent, orders: npt.ArrayLike, *, sampling_probability: float
) -> ApproximateRdp:
    """Return the Rényi divergences, up to a slack, of a noisy label between two data sets that
    differ by adding or removing one record.

    Say the record moves a vote from class 2 to class 1. Tell the observer the largest noisy vote M
    of all other classes, and whose it is. Neither depends on the record. The winner among 1, 2 and
    "another" is left, a distribution on three outcomes that depends only on u = n_1 - M and v =
    n_2 - M. So the divergence is at most the largest one over all integers u, v of the pair (u, v)
    and (u + 1, v - 1). This is taken in both directions, for each way in which the order of the
    classes breaks ties. Sampling mixes each pair as in ``screening_rdp``.
    ``largest_winner_divergence`` finds the largest. The result is the smaller of this and the
    Gaussian cost of the votes.

    **Guarantee.** The guarantee of ``ApproximateRdp``: every label's distribution is within total
    variation ``slack`` of one whose divergence is at most the returned one, at both neighbours.
    Margins beyond 12 sigma are replaced by nearer ones of nearly the same distribution. Slack is
    below 2e-31.

    Args:
        event: the label.
        orders: shape (k,), integers of at least 2.
        sampling_probability: rate of the Poisson sampling, in (0, 1], where 1 means no sampling.

    Raises:
        InvalidParameter: a parameter out of its range.

    Edge cases: from ``LARGEST_SIGMA`` on a label costs no more than one of ``LARGEST_SIGMA`` (more
    noise is post-processing), and no more than its noisy votes. The noisy votes are cheaper from
    about 1.25 times ``LARGEST_SIGMA``, and from twice of it nothing else is computed. Below
    ``SMALLEST_SIGMA`` the noisy votes are charged.

    Example:
        >>> cost = noisy_argmax_rdp(NoisyArgmaxDpEvent(sigma=20.0), [8], sampling_probability=1.0)
        >>> round(float(cost.divergences[0]) / (8 * 2 / (2 * 20.0**2)), 3)
        0.643
        >>> cost.slack < 1e-32
        True

    Utility:
        0.64 of the cost of the noisy votes at order 8 and sigma = 20, and never above it.

    Runtime:
        Tenths of a second for 60 orders, once for each sigma and rate. The result is kept.

    References:
        - Zhu, Yu, Chandraker and Wang (2020), "Private-kNN: practical differential privacy for
          computer vision", doi:10.1109/CVPR42600.2020.01187 (charges the noisy votes).
        - Karlin (1968), "Total positivity", Stanford University Press (total positivity, on which
          the bound of blocks rests).
        - The theorem and its proof: docs/private-knn-accounting.md, theorem 2.

    See Also:
        reticent.accounting.screening_rdp: the other step.
        reticent.accounting.private_knn_total: a whole release.
        reticent.mechanisms.NoisyArgmax: the mechanism.
    """
    votes = sampled_gaussian_rdp(
        orders,
        noise_multiplier=event.sigma / math.sqrt(2),
        sampling_probability=sampling_probability,
    )
    alphas = tuple(int(order) for order in np.atleast_1d(np.asarray(orders)))
    if not SMALLEST_SIGMA <= event.sigma <= 2 * LARGEST_SIGMA:
        return ApproximateRdp(alphas, votes, 0.0)
    sigma = _searched(event.sigma)
    box = math.ceil(_REACH * sigma) + _SPARE
    labels: dict[int, float] = {}
    left = sorted(set(alphas))
    while left:
        # Orders within a factor of 2 have their worst pairs close together, so that one search
        # serves them all.
        group = tuple(order for order in left if 2 * order >= left[-1])
        labels.update(
            zip(
                group,
                largest_winner_divergence(sigma, box, float(sampling_probability), group),
                strict=True,
            )
        )
        left = left[: -len(group)]
    found = (1 + _ROUNDING) * np.array([labels[order] for order in alphas])
    slack = 3.0 * math.exp(float(log_tails(np.array([box - _SPARE]), sigma=sigma)[0][0]))
    if sigma < event.sigma:
        slack += _SPLIT
    return ApproximateRdp(alphas, np.minimum(votes, found), slack)


def _searched(sigma: float) -> float:
    """Return the noise whose cost is searched for: ``sigma``, or a little less where that is
    cheaper or quicker. So the charge never rises with the noise.
    """
    if sigma <= FINE_SIGMA:
        return sigma
    step = FINE_SIGMA * 2.0 ** (math.ceil(math.log2(sigma / FINE_SIGMA)) - 1)
    if sigma > LARGEST_SIGMA:
        step = LARGEST_SIGMA
    elif sigma > _COARSER * step:
        return sigma
    return min(step, math.sqrt(sigma**2 - _APART))
