"""The releases of a Private-kNN estimator, and the one place where its queries are answered."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from reticent.accounting import (
    PrivacyEvent,
    PrivateKnnSteps,
    PrivateKnnTotal,
    calibrate_private_knn,
    private_knn_total,
)
from reticent.core.arrays import Booleans, Integers
from reticent.core.checks import count, positive, probability, real
from reticent.core.guarantees import AddRemove, Guarantee
from reticent.core.settings import Group
from reticent.mechanisms import NoisyArgmax, NoisyScreening
from reticent.neighbours import SampledNeighbours, label_votes
from reticent.neighbours.integer_points import Points
from reticent.noise import Sampler, SeededSampler

UNANSWERED = -1
"""Label of a query that was withheld."""

NOISE_RATIO = 3.0
"""Noise of the largest count of a query, in that of a vote, where queries are screened."""

ONE_RECORD = AddRemove(1)
"""One record more or less, of the records that a plan is used on."""


@dataclass(frozen=True, kw_only=True)
class Neighbours(Group):
    """Rule for which private records vote on a query, and when their vote counts.

    Args:
        number: number of included records that vote, k, at least 1.
        sampling_probability: probability of including a record, afresh for every query and step, in
            (0, 1].
        threshold: votes, noise included, that the largest count of a query must reach before it is
            answered, or None to answer all.

    Example:
        >>> Neighbours(number=50).get_params()["sampling_probability"]
        0.15

    References:
        - Zhu, Yu, Chandraker and Wang (2020), "Private-kNN: practical differential privacy for
          computer vision", doi:10.1109/CVPR42600.2020.01187.

    See Also:
        reticent.PrivateKNNClassifier: an estimator that takes it.
    """

    number: int = 300
    sampling_probability: float = 0.15
    threshold: float | None = None


@dataclass(frozen=True)
class KnnNoise:
    """The queries that will ever be asked, and their cost together.

    **Guarantee.** ``guarantee`` holds for everything that is ever released under this plan: at most
    ``steps.queries`` queries, chosen in public or from earlier answers, of which at most
    ``steps.answers`` get a label. It is charged as a whole, whatever part of it is used, because a
    total of many small steps is far below their sum.

    Attributes:
        steps: the noisy steps.
        delta: delta of the total.
        classes: number of classes, at least 2.
        adjacency: one record more or less, or all records of one person, of which data set.
    """

    steps: PrivateKnnSteps
    delta: float
    classes: int
    adjacency: AddRemove = ONE_RECORD

    def __post_init__(self) -> None:
        count(self.classes, name="classes", minimum=2)

    @classmethod
    def of(
        cls,
        *,
        epsilon: float,
        delta: float,
        queries: int,
        answers: int | None,
        neighbours: int,
        sampling_probability: float,
        threshold: float | None,
        classes: int,
        adjacency: AddRemove = ONE_RECORD,
    ) -> KnnNoise:
        """Return the plan with the least noise that fits into (epsilon, delta).

        Args:
            epsilon, delta: the total.
            queries: most queries that are asked.
            answers: most labels, or None for as many as queries.
            neighbours, sampling_probability: the same of ``PrivateKnnSteps``.
            threshold: votes that screening asks for, or None for no screening.
            classes: number of classes.
            adjacency: the protected difference.

        Raises:
            InvalidParameter: a parameter out of its range.
            CalibrationFailed: no noise is enough.
        """
        positive(epsilon, name="epsilon")
        probability(delta, name="delta", allow_zero=False)
        asked = count(queries, name="queries")
        most = asked if answers is None else count(answers, name="answers")
        count(neighbours, name="neighbours")
        positive(sampling_probability, name="sampling_probability")
        if threshold is not None:
            real(threshold, name="threshold")
        steps = calibrate_private_knn(
            epsilon=epsilon,
            delta=delta,
            queries=queries,
            answers=most,
            neighbours=neighbours,
            sampling_probability=sampling_probability,
            threshold=threshold,
            noise_ratio=None if threshold is None else NOISE_RATIO,
            shared_subsample=False,
        )
        return cls(steps, delta, classes, adjacency)

    @cached_property
    def total(self) -> PrivateKnnTotal:
        """Return the cost of the whole plan, and the bound that proves it."""
        return private_knn_total(self.steps, delta=self.delta)

    @property
    def guarantee(self) -> Guarantee:
        """The cost of the whole plan."""
        return Guarantee(self.total.epsilon, self.total.delta, self.adjacency)

    @property
    def event(self) -> PrivacyEvent:
        """The whole plan as one cost, as a ledger books it."""
        return PrivacyEvent("Private-kNN plan", self.guarantee)

    def rehearse(self) -> None:
        """Screen and label a query without votes, with a seed: what cannot answer fails before any
        charge.

        Raises:
            ReticentError: the noise is beyond what the sampler holds.
        """
        sampler = SeededSampler(0)
        if self.screening is not None:
            self.screening.release(np.zeros(1, dtype=np.int64), sampler=sampler)
        self.argmax.release(np.zeros((1, self.classes), dtype=np.int64), sampler=sampler)

    @cached_property
    def screening(self) -> NoisyScreening | None:
        """The screening mechanism, or None without screening."""
        if self.steps.threshold is None or self.steps.sigma_screening is None:
            return None
        return NoisyScreening(
            neighbours=self.steps.neighbours,
            threshold=self.steps.threshold,
            sigma=self.steps.sigma_screening,
            sampling_probability=self.steps.sampling_probability,
            delta=self.delta,
        )

    @cached_property
    def argmax(self) -> NoisyArgmax:
        """The voting mechanism."""
        return NoisyArgmax(
            classes=self.classes,
            neighbours=self.steps.neighbours,
            sigma=self.steps.sigma_votes,
            sampling_probability=self.steps.sampling_probability,
            delta=self.delta,
        )

    def answer(self, queries: Points, voters: SampledNeighbours, *, sampler: Sampler) -> Integers:
        """Return a label for each query, or ``UNANSWERED``. Counting them is the caller's part.

        **Guarantee.** The guarantee of the plan, for all answers together, over whatever searches
        they are answered from. Every search has to hold the same private records, and its features
        have to come from public things or these answers.

        Args:
            queries: shape (n, d), integer points.
            voters: the private records, sampled as the plan says.
            sampler: the source of randomness.

        Returns:
            Shape (n,), int64.
        """
        labels = np.full(len(queries), UNANSWERED, dtype=np.int64)
        for lists in voters.search.lists(queries, depth=voters.depth):
            chosen = voters.draw(lists, sampler=sampler)
            passed = self._screen(self._votes(chosen, voters), sampler)
            # Without screening nothing has been released about the first sample yet, so it may
            # vote.
            fresh = self.screening is not None and not self.steps.shared_subsample
            voting = voters.draw(lists.rows(passed), sampler=sampler) if fresh else chosen[passed]
            answers = self.argmax.release(self._votes(voting, voters), sampler=sampler)
            labels[lists.first + np.flatnonzero(passed)] = answers
        return labels

    def _screen(self, votes: Integers, sampler: Sampler) -> Booleans:
        if self.screening is None:
            return np.ones(len(votes), dtype=np.bool_)
        return self.screening.release(votes.max(axis=1), sampler=sampler)

    def _votes(self, chosen: Integers, voters: SampledNeighbours) -> Integers:
        return label_votes(chosen, voters.records.votes, classes=self.classes)
