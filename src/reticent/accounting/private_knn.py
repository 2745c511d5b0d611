"""The cost of a Private-kNN release (screening bits and noisy labels on Poisson samples) by the
smallest of several bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reticent.accounting.approximate_rdp import ApproximateRdp
from reticent.accounting.conversion import epsilon_of_rdp
from reticent.accounting.discrete_gaussian import sampled_gaussian_rdp
from reticent.accounting.noisy_argmax import NoisyArgmaxDpEvent, noisy_argmax_rdp
from reticent.accounting.screening import ScreeningDpEvent, pass_ratio, screening_rdp
from reticent.core.arrays import Array
from reticent.core.checks import count, positive, probability
from reticent.core.errors import InvalidParameter

ORDERS: tuple[int, ...] = (
    *range(2, 65),
    *sorted({round(64 * 2 ** (step / 16)) for step in range(1, 65)}),
)
"""Integer orders from 2 to 1024. In between, nothing is proved for discrete Gaussian noise on a
sample.
"""

_NEAR = (0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.45, 1.6)
"""Range in which the best order of the exact costs is searched for, relative to that of the
Gaussian ones, which cost half as much again.
"""


@dataclass(frozen=True)
class PrivateKnnSteps:
    """The noisy steps of a Private-kNN release. Sigmas, threshold and sensitivity are in votes, and
    the noise is discrete Gaussian on the integers.

    Attributes:
        queries: largest number of public queries that are looked at. Each is screened unless
            ``threshold`` is None.
        answers: largest number of labels released, no more than ``queries``. Once so many queries
            passed, none is looked at any more.
        neighbours: k, the number of included records that vote.
        sampling_probability: probability that a record enters a query's Poisson subsample, in (0,
            1].
        sigma_votes: noise of every class's votes.
        threshold: votes that the noisy largest vote must reach, or None without screening.
        sigma_screening: noise of the largest vote, or None without screening.
        shared_subsample: whether screening and voting of a query see one subsample. Otherwise each
            draws its own.
        vote_sensitivity: l2 distance that one record moves the vector of votes, sqrt(2) where every
            neighbour has one vote.
        one_label: whether only the class with the most noisy votes is released. Otherwise any
            function of the noisy votes may be.
    """

    queries: int
    answers: int
    neighbours: int
    sampling_probability: float
    sigma_votes: float
    threshold: float | None
    sigma_screening: float | None
    shared_subsample: bool = False
    vote_sensitivity: float = math.sqrt(2.0)
    one_label: bool = True

    def __post_init__(self) -> None:
        count(self.queries, name="queries")
        if count(self.answers, name="answers") > self.queries:
            raise InvalidParameter(
                f"answers={self.answers}: expected at most queries={self.queries}"
            )
        count(self.neighbours, name="neighbours")
        if not 0 < self.sampling_probability <= 1:
            raise InvalidParameter(
                f"sampling_probability={self.sampling_probability!r}: expected a number in (0, 1]"
            )
        positive(self.sigma_votes, name="sigma_votes")
        positive(self.vote_sensitivity, name="vote_sensitivity")
        if (self.threshold is None) != (self.sigma_screening is None):
            raise InvalidParameter("threshold and sigma_screening: expected both, or None for both")
        if self.sigma_screening is not None:
            positive(self.sigma_screening, name="sigma_screening")
        if self.one_label and self.vote_sensitivity != math.sqrt(2.0):
            raise InvalidParameter(
                f"vote_sensitivity={self.vote_sensitivity!r}: expected sqrt(2) for one label; "
                "set one_label=False for other votes"
            )

    @property
    def screening(self) -> ScreeningDpEvent | None:
        """Screening bit, for any number of included neighbours from none to k."""
        if self.threshold is None or self.sigma_screening is None:
            return None
        return ScreeningDpEvent(
            0, self.neighbours, self.threshold, self.sigma_screening, discrete=True
        )

    @property
    def vote_rate(self) -> float:
        """Bound on the probability that a record takes part in a vote, given that the query passed
        its screening.

        With a subsample of its own the bound is the sampling probability g. With the subsample of
        the screening it is g r / (1 - g + g r), where r is the largest ratio of the probabilities
        to pass at neighbouring counts.
        """
        event, rate = self.screening, self.sampling_probability
        if event is None or not self.shared_subsample:
            return rate
        ratio = pass_ratio(event)
        return rate * ratio / (1 - rate + rate * ratio)


@dataclass(frozen=True)
class PrivateKnnTotal:
    """The cost of a release under the addition or removal of one record.

    Attributes:
        epsilon: epsilon of the whole release.
        delta: delta of the whole release.
        bound: the bound that gave this epsilon.
        considered: every bound that was computed, with its epsilon, smallest first.
    """

    epsilon: float
    delta: float
    bound: str
    considered: tuple[tuple[str, float], ...]


def private_knn_total(steps: PrivateKnnSteps, *, delta: float) -> PrivateKnnTotal:
    """Return the smallest epsilon of ``steps`` that one of the bounds proves.

    **Guarantee.** All screening bits and labels together are (epsilon, delta)-differentially
    private under the addition or removal of one record. Queries may be chosen from earlier answers.
    A query that fails its screening pays for no vote, since each bound holds for every adaptive
    order of at most ``queries`` bits and ``answers`` labels. The numbers of both are capped in
    advance, so no share of delta is lost to a filter (docs/private-knn-accounting.md, theorem 3).

    The bounds are

    - ``Rényi, noisy votes``: every bit and label as the sampled Gaussian step that it
      post-processes. On a shared subsample every query counts as one step of 1/sigma_eff^2 =
      1/sigma_screening^2 + sensitivity^2/sigma_votes^2.
    - ``Rényi, bits and labels``: ``screening_rdp`` and ``noisy_argmax_rdp``, the cost of the bits
      and labels that are really released.

    Args:
        steps: the steps.
        delta: total delta, in (0, 1).

    Raises:
        InvalidParameter: ``delta`` out of range.

    Example:
        >>> steps = PrivateKnnSteps(
        ...     queries=1000,
        ...     answers=735,
        ...     neighbours=300,
        ...     sampling_probability=0.15,
        ...     sigma_votes=25.0,
        ...     threshold=180.0,
        ...     sigma_screening=75.0,
        ... )
        >>> total = private_knn_total(steps, delta=1e-5)
        >>> round(total.epsilon, 3), total.bound
        (0.758, 'Rényi, bits and labels')

    Utility:
        The smaller of two bounds: 0.758 where the noisy votes alone cost 0.966, for 1,000
        queries and 735 labels on samples of 15 %.

    Runtime:
        0.2 s the first time for new steps on one core (benchmarks/runtimes.py), milliseconds again.

    References:
        - Zhu, Yu, Chandraker and Wang (2020), "Private-kNN: practical differential privacy for
          computer vision", doi:10.1109/CVPR42600.2020.01187 (the release and its first accounting).
        - Zhu and Wang (2019), "Poisson subsampled Rényi differential privacy", International
          Conference on Machine Learning (ICML), PMLR 97 (sampling).
        - Mironov, Talwar and Zhang (2019), "Rényi differential privacy of the sampled Gaussian
          mechanism", arXiv:1908.10530 (sampled Gaussian noise).
        - The bounds and their proofs: docs/private-knn-accounting.md.

    See Also:
        reticent.accounting.calibrate_private_knn: the inverse.
        reticent.IndividualKNNClassifier: numbers that are not known beforehand.
        reticent.PrivateKNNClassifier: the estimator.
    """
    delta = probability(delta, name="delta", allow_zero=False)
    gaussian, order = _epsilon_of_votes(steps, delta)
    found = {
        "Rényi, noisy votes": gaussian,
        "Rényi, bits and labels": _epsilon_of_labels(steps, delta, order),
    }
    considered = tuple(sorted(found.items(), key=lambda item: item[1]))
    bound, epsilon = considered[0]
    return PrivateKnnTotal(epsilon, delta, bound, considered)


def private_knn_rdp(steps: PrivateKnnSteps, orders: Sequence[int] = ORDERS) -> ApproximateRdp:
    """Return the Rényi divergences of the whole release by ``Rényi, bits and labels``, with the
    slack of all its labels.

    Args:
        steps: the steps.
        orders: integers of at least 2.

    Example:
        >>> steps = PrivateKnnSteps(
        ...     queries=1000,
        ...     answers=735,
        ...     neighbours=300,
        ...     sampling_probability=0.15,
        ...     sigma_votes=25.0,
        ...     threshold=180.0,
        ...     sigma_screening=75.0,
        ... )
        >>> round(private_knn_rdp(steps).epsilon(delta=1e-5), 3)
        0.758

    References:
        - Zhu, Yu, Chandraker and Wang (2020), "Private-kNN: practical differential privacy for
          computer vision", doi:10.1109/CVPR42600.2020.01187.
        - Mironov (2017), "Rényi differential privacy", arXiv:1702.07476.
        - The bound and its proof: docs/private-knn-accounting.md.

    See Also:
        reticent.accounting.private_knn_total: the smaller of both bounds.
    """
    return steps.queries * screening_bit_rdp(steps, orders) + steps.answers * label_rdp(
        steps, orders
    )


def epsilon_of_noisy_votes(steps: PrivateKnnSteps, *, delta: float) -> float:
    """Return epsilon of ``steps`` by ``Rényi, noisy votes`` of ``private_knn_total`` alone, which
    is quick.
    """
    return _epsilon_of_votes(steps, probability(delta, name="delta", allow_zero=False))[0]


def screening_bit_rdp(steps: PrivateKnnSteps, orders: Sequence[int]) -> ApproximateRdp:
    """Return the Rényi divergences of one screening bit, zero without screening, and always without
    slack.
    """
    event = steps.screening
    curve = np.zeros(len(orders))
    if event is not None:
        curve = screening_rdp(event, orders, sampling_probability=steps.sampling_probability)
    return ApproximateRdp(tuple(orders), curve, 0.0)


def label_rdp(steps: PrivateKnnSteps, orders: Sequence[int]) -> ApproximateRdp:
    """Return the Rényi divergences of one query's vote, with the slack of a label."""
    if steps.one_label:
        return noisy_argmax_rdp(
            NoisyArgmaxDpEvent(steps.sigma_votes), orders, sampling_probability=steps.vote_rate
        )
    return ApproximateRdp(tuple(orders), _votes_rdp(steps, orders), 0.0)


def _votes_rdp(steps: PrivateKnnSteps, orders: Sequence[int]) -> Array:
    multiplier = steps.sigma_votes / steps.vote_sensitivity
    return sampled_gaussian_rdp(
        orders, noise_multiplier=multiplier, sampling_probability=steps.vote_rate
    )


def _epsilon_of_votes(steps: PrivateKnnSteps, delta: float) -> tuple[float, int]:
    """Return epsilon of sampled Gaussian steps, and the order that gave it."""
    rate, sigma = steps.sampling_probability, steps.sigma_screening
    if sigma is None:
        return _epsilon(steps.answers * _votes_rdp(steps, ORDERS), ORDERS, delta)
    if steps.shared_subsample:
        precision = 1 / sigma**2 + (steps.vote_sensitivity / steps.sigma_votes) ** 2
        together = sampled_gaussian_rdp(
            ORDERS, noise_multiplier=1 / math.sqrt(precision), sampling_probability=rate
        )
        return _epsilon(steps.queries * together, ORDERS, delta)
    bits = steps.queries * sampled_gaussian_rdp(
        ORDERS, noise_multiplier=sigma, sampling_probability=rate
    )
    return _epsilon(bits + steps.answers * _votes_rdp(steps, ORDERS), ORDERS, delta)


def _epsilon_of_labels(steps: PrivateKnnSteps, delta: float, order: int) -> float:
    orders = sorted({min(max(2, round(order * factor)), ORDERS[-1]) for factor in _NEAR})
    return private_knn_rdp(steps, orders).epsilon(delta=delta)


def _epsilon(rdp: Array, orders: Sequence[int], delta: float) -> tuple[float, int]:
    epsilon, order = epsilon_of_rdp(orders, rdp, delta)
    return epsilon, round(order)
