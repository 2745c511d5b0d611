"""Sparse-vector screening, where queries below a threshold are free and each one above it costs a
whole run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reticent.accounting.composition import Composition, smallest_epsilon
from reticent.core.arrays import Array
from reticent.core.checks import positive, probability
from reticent.core.errors import InvalidParameter


@dataclass(frozen=True)
class AboveThreshold:
    """One run of queries, up to the first whose noisy largest vote reaches the noisy threshold. The
    next run draws all noise anew.

    **Guarantee.** All bits of one run together, however many queries it takes, are
    (epsilon_threshold + epsilon_queries, 0)-private under the addition or removal of one record,
    which moves every largest vote by at most 1. Queries may be chosen from earlier bits. The caller
    draws discrete Laplace noise of ``threshold_scale`` once per run and of ``query_scale`` for each
    query, adds it to whole votes and a whole threshold, and ends the run at the first bit that says
    yes.

    With *one* Poisson subsample for the whole run, of rate g, a run is log(1 + g
    (exp(epsilon) - 1))-private. With a subsample for each query the run is not amplified, because
    its threshold is compared with all of them.

    Attributes:
        epsilon_threshold: share of the threshold's noise.
        epsilon_queries: share of the queries' noise.

    Example:
        >>> run = AboveThreshold(epsilon_threshold=0.1, epsilon_queries=0.2)
        >>> run.threshold_scale, run.query_scale
        (10.0, 10.0)

    Utility:
        Pure, and the same for one query and a million. Gaussian screening costs less where many
        queries pass.

    Runtime:
        O(1).

    References:
        - Dwork and Roth (2014), "The algorithmic foundations of differential privacy",
          doi:10.1561/0400000042, theorem 3.23.
        - Lyu, Su and Li (2017), "Understanding the sparse vector technique for differential
          privacy", arXiv:1603.01699, theorem 4 (the split at one answer).
        - Li, Qardaji and Su (2012), "On sampling, anonymization, and differential privacy: or,
          k-anonymization meets differential privacy", arXiv:1101.2604 (sampling).
        - The proof compares sums over integers in place of integrals, so it is the same for
          discrete noise: docs/private-knn-accounting.md.

    See Also:
        reticent.mechanisms.SparseVectorScreening: the mechanism.
        reticent.accounting.screening_rdp: bits that are each paid for.
    """

    epsilon_threshold: float
    epsilon_queries: float

    def __post_init__(self) -> None:
        positive(self.epsilon_threshold, name="epsilon_threshold")
        positive(self.epsilon_queries, name="epsilon_queries")

    @property
    def threshold_scale(self) -> float:
        """Scale of the threshold's discrete Laplace noise, in votes."""
        return 1.0 / self.epsilon_threshold

    @property
    def query_scale(self) -> float:
        """Scale of every query's discrete Laplace noise, in votes. It is doubled, because votes may
        move against the threshold.
        """
        return 2.0 / self.epsilon_queries

    def run_epsilon(self, *, sampling_probability: float) -> float:
        """Return epsilon of one run on one subsample. A rate of 1 means no sampling, or a subsample
        for each query.

        Example:
            >>> round(AboveThreshold(0.1, 0.2).run_epsilon(sampling_probability=0.15), 4)
            0.0511
        """
        rate = positive(sampling_probability, name="sampling_probability")
        if rate > 1:
            raise InvalidParameter(
                f"sampling_probability={sampling_probability!r}: expected a number in (0, 1]"
            )
        return math.log1p(rate * math.expm1(self.epsilon_threshold + self.epsilon_queries))

    def total(self, *, runs: int, sampling_probability: float, delta: float) -> Composition:
        """Return the smallest total of ``runs`` runs at ``delta``. There are as many runs as
        queries may pass, with the unfinished one counted.
        """
        one = self.run_epsilon(sampling_probability=sampling_probability)
        return smallest_epsilon(
            epsilon=one, answers=runs, delta=probability(delta, name="delta"), answer_delta=0.0
        )

    def rdp(self, orders: npt.ArrayLike, *, sampling_probability: float) -> Array:
        """Return the Rényi divergence of one run at ``orders``, shape (k,), to be added to that of
        the labels.
        """
        alphas = np.atleast_1d(np.asarray(orders, dtype=np.float64))
        one = self.run_epsilon(sampling_probability=sampling_probability)
        # The worst of all mechanisms of one pure epsilon is randomised response.
        lie = -np.logaddexp(0.0, one)
        return np.asarray(np.logaddexp(alphas * one + lie, (1 - alphas) * one + lie) / (alphas - 1))
