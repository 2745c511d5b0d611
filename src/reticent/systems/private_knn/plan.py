"""What a Private-kNN front door may release, and the one place where its queries are answered."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.accounting import PrivacyEvent, PrivateKnnSteps, PrivateKnnTotal, calibrate_private_knn, private_knn_total
from reticent.core.checks import count
from reticent.core.errors import BudgetExceeded, CalibrationFailed
from reticent.core.guarantees import AddRemove, Guarantee
from reticent.mechanisms import NoisyArgmax, NoisyScreening
from reticent.neighbours import SampledNeighbours, label_votes
from reticent.neighbours.integer_points import Points
from reticent.noise import Sampler

Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

UNANSWERED = -1
"""Label of a query that was withheld."""


@dataclass(frozen=True)
class KnnPlan:
    """All the queries that will ever be asked, and what they cost together.

    **Guarantee.** ``guarantee`` holds for everything that one ``KnnDesk`` of this plan releases in its life: at most
    ``steps.queries`` queries, chosen in public or from earlier answers, of which at most ``steps.answers`` get a label. It is
    charged as a whole, whatever part of it is used, because a total of many small steps is far below their sum.

    Attributes:
        steps: the noisy steps.
        delta: of the total.
        classes: number of classes, at least 2.
    """

    steps: PrivateKnnSteps
    delta: float
    classes: int

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
        sigma_screening: float | None,
        sigma_votes: float | None,
        noise_ratio: float,
        shared_subsample: bool,
        classes: int,
    ) -> KnnPlan:
        """The plan with the least noise that fits into (epsilon, delta), or with the given noise if that fits.

        Args:
            epsilon, delta: of the total.
            queries: asked at most.
            answers: labels at most; None for as many as queries.
            neighbours, sampling_probability, shared_subsample: see ``PrivateKnnSteps``.
            threshold: votes that screening asks for, None for no screening.
            sigma_screening, sigma_votes: noise, or None to have it chosen; both or neither where there is screening.
            noise_ratio: sigma_screening / sigma_votes where they are chosen.
            classes: number of classes.

        Raises:
            InvalidParameter: a parameter out of its range.
            CalibrationFailed: the given noise costs more than epsilon, or no noise is enough.
        """
        most = queries if answers is None else answers
        screened = threshold is not None
        if sigma_votes is None:
            if sigma_screening is not None:
                raise CalibrationFailed("sigma_screening: expected sigma_votes as well, or neither to have both chosen")
            steps = calibrate_private_knn(
                epsilon=epsilon,
                delta=delta,
                queries=queries,
                answers=most,
                neighbours=neighbours,
                sampling_probability=sampling_probability,
                threshold=threshold,
                noise_ratio=noise_ratio if screened else None,
                shared_subsample=shared_subsample,
            )
            return cls(steps, delta, classes)
        steps = PrivateKnnSteps(
            queries=queries,
            answers=most,
            neighbours=neighbours,
            sampling_probability=sampling_probability,
            sigma_votes=sigma_votes,
            threshold=threshold,
            sigma_screening=sigma_screening,
            shared_subsample=shared_subsample,
        )
        plan = cls(steps, delta, classes)
        if plan.total.epsilon > epsilon:
            raise CalibrationFailed(
                f"sigma_votes={sigma_votes!r}: with the other settings the total is epsilon={plan.total.epsilon:.4g}, "
                f"more than epsilon={epsilon!r}; raise epsilon or the noise, or ask less"
            )
        return plan

    @cached_property
    def total(self) -> PrivateKnnTotal:
        """The cost of the whole plan, and the bound that proves it."""
        return private_knn_total(self.steps, delta=self.delta, interval=None)

    @property
    def guarantee(self) -> Guarantee:
        """The cost of the whole plan."""
        return Guarantee(self.total.epsilon, self.total.delta, AddRemove(1))

    @property
    def event(self) -> PrivacyEvent:
        """The whole plan as one cost, as a ledger books it."""
        return PrivacyEvent("Private-kNN plan", self.guarantee)

    @cached_property
    def screening(self) -> NoisyScreening | None:
        """The screening mechanism, None without screening."""
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


class KnnDesk:
    """Answers the queries of one plan and counts them; the count goes up before anything is computed. One call at a time.

    **Guarantee.** That of ``plan``, for all answers of one desk together, over whatever searches they are answered from, as long
    as every search holds the same private records and its features came from public things or this desk's answers.

    Args:
        plan: what may be released.
    """

    def __init__(self, plan: KnnPlan) -> None:
        self.plan = plan
        self.asked = 0
        self.answered = 0
        self._turn = Lock()  # two threads must not both find room for what only one of them may ask

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_turn"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _turn=Lock())

    @property
    def remaining(self) -> int:
        """Queries that may still be asked; 0 once all labels are given out."""
        steps = self.plan.steps
        return steps.queries - self.asked if self.answered < steps.answers else 0

    def answer(self, queries: Points, voters: SampledNeighbours, *, sampler: Sampler) -> Integers:
        """A label for each query, or ``UNANSWERED``.

        Args:
            queries: shape (n, d), integer points.
            voters: the private records, sampled as the plan says.
            sampler: source of randomness.

        Returns:
            Shape (n,), int64.

        Raises:
            BudgetExceeded: more queries than are left; none is answered or counted.
        """
        with self._turn:
            return self._answer(queries, voters, sampler)

    def _answer(self, queries: Points, voters: SampledNeighbours, sampler: Sampler) -> Integers:
        if len(queries) > self.remaining:
            raise BudgetExceeded(
                f"queries: requested {len(queries)}, {self.asked} of {self.plan.steps.queries} asked and {self.answered} of "
                f"{self.plan.steps.answers} labels given out; at most {self.remaining} more may be asked under this plan"
            )
        self.asked += len(queries)
        labels = np.full(len(queries), UNANSWERED, dtype=np.int64)
        for lists in voters.search.lists(queries, depth=voters.depth):
            if self.answered == self.plan.steps.answers:
                break
            chosen = voters.draw(lists, sampler=sampler)
            passed = self._screen(self._votes(chosen, voters), sampler)
            passed &= passed.cumsum() <= self.plan.steps.answers - self.answered
            self.answered += int(passed.sum())
            # Without screening nothing has been released about the first sample yet, so it may vote.
            fresh = self.plan.screening is not None and not self.plan.steps.shared_subsample
            voting = voters.draw(lists.rows(passed), sampler=sampler) if fresh else chosen[passed]
            answers = self.plan.argmax.release(self._votes(voting, voters), sampler=sampler)
            labels[lists.first + np.flatnonzero(passed)] = answers
        return labels

    def _screen(self, votes: Integers, sampler: Sampler) -> Booleans:
        if self.plan.screening is None:
            return np.ones(len(votes), dtype=np.bool_)
        return self.plan.screening.release(votes.max(axis=1), sampler=sampler)

    def _votes(self, chosen: Integers, voters: SampledNeighbours) -> Integers:
        return label_votes(chosen, voters.records.votes, classes=self.plan.classes)
