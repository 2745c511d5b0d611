"""Screening by the sparse vector technique, where only one of the two outcomes costs anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Integers
from reticent.core.checks import count, one_of, positive
from reticent.core.guarantees import Adjacency, Guarantee
from reticent.mechanisms.mechanism import Mechanism
from reticent.mechanisms.noisy_screening import checked_votes
from reticent.noise import Sampler


@dataclass(frozen=True, kw_only=True)
class SparseVectorScreening(Mechanism):
    """A test of query after query that compares the largest vote with a noisy threshold, up to
    ``limit`` outcomes of the paid kind.

    **Guarantee.** If one neighbour step moves every largest vote by at most 1, all outcomes
    together are (limit (epsilon_threshold + epsilon_query), 0)-private under ``adjacency``, for any
    number of outcomes of the free kind.

    *Why.* Take one run, from a fresh threshold noise r to the first paid outcome. Let outcomes be
    paid where q_i + n_i >= T + r (the other kind is the same with signs turned). At a neighbour
    every q_i moves by at most 1. Shift r by 1 upwards. Every free outcome at the one data set is
    then one at the other, and the paid one needs its n_i shifted by at most 2. Discrete Laplace
    noise with P(v) ~ exp(-|v| / b) changes by a factor of at most e^(1/b) per step, so the run
    costs 1/b_r + 2/b_n = epsilon_threshold + epsilon_query. Runs compose, with fresh noise each.
    The noise of an answered query is never used again.

    *Use.* Where nearly all queries pass, let failing be the paid kind. Then the budget is spent on
    hard queries only. Unlike ``NoisyScreening`` it is not amplified by sampling, because its runs
    span queries, which must all see one data set. Use the votes of the k nearest of *all* records
    (probability 1), or charge a sample that was drawn once for all queries.

    *Floating point.* All numbers are integers.

    Attributes:
        threshold: number of votes, an integer.
        epsilon_threshold: epsilon of the threshold's noise, per run.
        epsilon_query: epsilon of the queries' noise, per run.
        limit: number of paid outcomes after which no query is looked at any more.
        paid: the outcome that is paid for, "passes" or "fails".
        adjacency: the relation of neighbours.

    Example:
        >>> from reticent.core import AddRemove
        >>> from reticent.noise import SecureSampler
        >>> screening = SparseVectorScreening(
        ...     threshold=150,
        ...     epsilon_threshold=2.0,
        ...     epsilon_query=4.0,
        ...     limit=2,
        ...     paid="fails",
        ...     adjacency=AddRemove(),
        ... )
        >>> screening.release([300, 0, 300, 0, 300], sampler=SecureSampler()).tolist()
        [1, 0, 1, 0, -1]

    Utility:
        A comparison errs by noise of standard deviation 1.41 / epsilon_threshold and 2.83 /
        epsilon_query votes together, which is 32 votes at 0.1 and 0.1. The cost grows with the paid
        outcomes alone.

    Runtime:
        O(1) an outcome and O(n) vector work for each paid one, 3 microseconds an outcome on one
        core where a third is paid (benchmarks/runtimes.py).

    References:
        - Dwork, Naor, Reingold, Rothblum and Vadhan (2009), "On the complexity of differentially
          private data release: efficient algorithms and hardness results",
          doi:10.1145/1536414.1536467 (introduces the technique).
        - Lyu, Su and Li (2017), "Understanding the sparse vector technique for differential
          privacy", arXiv:1603.01699, algorithm 7 (here the threshold's noise is drawn again after
          every paid outcome).

    See Also:
        reticent.mechanisms.NoisyScreening: every bit paid for, amplified by sampling.
        reticent.accounting.AboveThreshold: one run, for accounting.
    """

    threshold: int
    epsilon_threshold: float
    epsilon_query: float
    limit: int
    paid: Literal["passes", "fails"]
    adjacency: Adjacency

    name: ClassVar[str] = "sparse-vector screening"
    most: ClassVar[int] = 2**40

    def __post_init__(self) -> None:
        count(self.threshold, name="threshold", minimum=0)
        positive(self.epsilon_threshold, name="epsilon_threshold")
        positive(self.epsilon_query, name="epsilon_query")
        count(self.limit, name="limit")
        one_of(self.paid, ("passes", "fails"), name="paid")

    @property
    def guarantee(self) -> Guarantee:
        """Cost of all outcomes together."""
        return Guarantee(
            self.limit * (self.epsilon_threshold + self.epsilon_query), 0.0, self.adjacency
        )

    def release(self, largest_votes: npt.ArrayLike, *, sampler: Sampler) -> Integers:
        """Return the outcomes of one sequence of queries.

        Args:
            largest_votes: shape (n,), integers of at least 0, in the order of the queries. Private.
            sampler: source of randomness.

        Returns:
            Shape (n,): 1 passed, 0 failed, -1 not looked at.

        Raises:
            InvalidInput: wrong shape or type. Values are never shown.
        """
        votes = checked_votes(largest_votes, name="largest_votes", ndim=1, most=self.most)
        runs = sampler.discrete_laplace(self.limit, scale=1.0 / self.epsilon_threshold)
        noise = sampler.discrete_laplace(votes.shape, scale=2.0 / self.epsilon_query)
        lead = votes + noise - self.threshold
        paying = self.paid == "passes"
        outcomes = np.full(len(votes), -1, dtype=np.int64)
        start = 0
        for threshold_noise in runs:
            passed = lead[start:] >= threshold_noise
            ends = np.flatnonzero(passed == paying)
            stop = len(votes) if not ends.size else start + int(ends[0]) + 1
            outcomes[start:stop] = passed[: stop - start]
            start = stop
        return outcomes
