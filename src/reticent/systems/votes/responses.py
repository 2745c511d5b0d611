"""From weights of votes to an answer: the largest noisy sum, or a response to the exact margin."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from reticent.accounting.calibration import epsilon_per_answer
from reticent.accounting.events import PrivacyEvent
from reticent.core.arrays import Array, Integers
from reticent.core.checks import one_of
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.guarantees import AddRemove, Guarantee, Replace
from reticent.grids.whole_numbers import clipped
from reticent.mechanisms import NoisySums, StabilityResponse, SumBlock
from reticent.noise import Sampler
from reticent.systems.votes.sums import VOTE, centred_length, label_sums, person_label_sums
from reticent.systems.votes.voters import Voters

_SQRT_2 = math.nextafter(math.sqrt(2.0), 2.0)

RESPONSES = ("auto", "gaussian", "stability")


def response_of(
    choice: str,
    *,
    epsilon: float,
    delta: float,
    answers: int,
    classes: int,
    adjacency: AddRemove | Replace,
    bound: float,
) -> Response:
    """The response that was asked for, calibrated to the total of all answers.

    Args:
        choice: one of ``RESPONSES``.
        epsilon, delta, answers: the total, and how many answers it is of.
        classes: how many labels there are.
        adjacency: what is protected.
        bound: the l2 norm of what one unit moves in a query's centred votes, in grid steps.

    Raises:
        UnknownName: none of ``RESPONSES``.
        InvalidParameter: Gaussian noise with delta 0.
    """
    one_of(choice, RESPONSES, name="response")
    if choice == "stability" or (choice == "auto" and (answers == 1 or delta == 0)):
        per_answer = epsilon
        if answers > 1:
            per_answer = epsilon_per_answer(epsilon=epsilon, delta=delta, answers=answers)
        return MarginResponse(epsilon, delta, answers, per_answer, classes, adjacency)
    if delta == 0:
        raise InvalidParameter(
            "delta=0: expected a delta above 0 for Gaussian noise, or response='stability'"
        )
    return GaussianResponse(
        NoisySums(
            blocks=(SumBlock(classes, bound),),
            sums=answers,
            epsilon=epsilon,
            delta=delta,
            adjacency=adjacency,
        )
    )


@dataclass(frozen=True)
class GaussianResponse:
    """Sums of weight times (K e_y - 1), with noise, of which the largest is the answer.

    Attributes:
        mechanism: one sum for each answer.
    """

    mechanism: NoisySums

    name: ClassVar[str] = "the largest of the votes with Gaussian noise"

    @property
    def guarantee(self) -> Guarantee:
        """The cost of all answers together."""
        return self.mechanism.guarantee

    @property
    def event(self) -> PrivacyEvent:
        """The same as one charge."""
        return self.mechanism.event

    def describe(self) -> str:
        """Describe the noise in one phrase."""
        return f"noise of {self._votes(self.mechanism.sigmas[0]):.4g} votes in every count"

    @property
    def spread(self) -> float:
        """The standard deviation, in votes, of the noise between two labels, or about that."""
        return math.sqrt(2.0) * float(self._votes(self.mechanism.sigmas[0]))

    def moved(self, *, persons: bool) -> float:
        """Return how far one unit moves the sums of two labels apart at most.

        A unit is a record, or a person, whose part is cut to a length alone.
        """
        classes = self.mechanism.blocks[0].width
        return VOTE * (_SQRT_2 * centred_length(classes) if persons else classes)

    def opening(self, votes: Array) -> Array:
        """Return what public votes add to the sums, whole numbers.

        Args:
            votes: shape (q, classes), whole numbers in steps of 1 / ``VOTE``.
        """
        return _centred(votes)

    def sums(self, voters: Voters, weights: Array, ballots: Array) -> Array:
        """Return exact sums by label, shape (q, classes), whole numbers. Private.

        Those of different units add up. Every unit's part has an l2 norm of at most VOTE
        sqrt(K (K - 1)).

        Args:
            voters, weights, ballots: arguments of ``label_sums``. A record's largest and least
                product differ by at most ``VOTE``. Less their mean they are no longer than a whole
                vote for one label.
        """
        classes = self.mechanism.blocks[0].width
        if voters.starts is None:
            return _centred(label_sums(voters, weights, ballots))
        parts = _centred(person_label_sums(voters, weights, ballots))
        flat = clipped(parts.reshape(-1, classes), VOTE * centred_length(classes))
        return np.asarray(flat.reshape(parts.shape).sum(axis=0))

    def scores(self, sums: Array, *, sampler: Sampler, noise_scale: float) -> Array:
        """Return noisy votes in records, less their mean, shape (q, classes).

        The largest entry of what is released is the answer.

        Args:
            sums: exact sums of all records.
            sampler: source of randomness.
            noise_scale: 1 in a release.
        """
        noisy = self.mechanism.noisy_rows(sums, sampler=sampler, noise_scale=noise_scale)
        votes = self._votes(noisy)
        return np.asarray(votes - votes.mean(axis=1, keepdims=True))

    def _votes(self, steps: Any) -> Any:
        return steps / (VOTE * self.mechanism.blocks[0].width)


@dataclass(frozen=True)
class MarginResponse:
    """The exact winner with a probability that grows with how many records its margin outlasts.

    **Guarantee.** (epsilon, delta) for all answers together, by optimal composition of pure
    answers.

    *Why.* One unit more or less moves the difference of any two labels' sums by at most one vote
    C; a replaced one by 2 C. With level = max(0, ceil(margin / C) - 1), neighbours' levels differ
    by at most 1. Where their winners differ, the two margins add up to at most C, so both levels
    are 0. That is what ``StabilityResponse`` asks for.

    Attributes:
        epsilon, delta: of all answers together.
        answers: how many there are at most.
        per_answer: epsilon of one, at delta 0.
        classes: how many labels there are.
        adjacency: ``AddRemove`` or ``Replace``.
    """

    epsilon: float
    delta: float
    answers: int
    per_answer: float
    classes: int
    adjacency: AddRemove | Replace

    name: ClassVar[str] = "randomised response to the exact margin"

    @cached_property
    def _response(self) -> StabilityResponse:
        return StabilityResponse(
            classes=self.classes, epsilon=self.per_answer, adjacency=self.adjacency
        )

    @property
    def guarantee(self) -> Guarantee:
        """As ``GaussianResponse`` has it."""
        delta = self.delta if self.answers > 1 else 0.0
        return Guarantee(self.epsilon, delta, self.adjacency)

    @property
    def event(self) -> PrivacyEvent:
        """As ``GaussianResponse`` has it."""
        return PrivacyEvent(self._response.name, self.guarantee)

    def describe(self) -> str:
        """As ``GaussianResponse`` has it."""
        return f"epsilon {self.per_answer:.4g} an answer"

    @property
    def spread(self) -> float:
        """The spread: that of a logistic variable, whose tail the response has."""
        return math.pi / (math.sqrt(3.0) * self.per_answer)

    def moved(self, *, persons: bool) -> float:
        """As ``GaussianResponse`` has it."""
        return VOTE

    def opening(self, votes: Array) -> Array:
        """As ``GaussianResponse`` has it."""
        return votes

    def sums(self, voters: Voters, weights: Array, ballots: Array) -> Array:
        """Return sums of which every unit moves the difference of two labels by at most VOTE."""
        if voters.starts is None:
            return label_sums(voters, weights, ballots)
        parts = person_label_sums(voters, weights, ballots)
        spread = parts.max(axis=2, keepdims=True) - parts.min(axis=2, keepdims=True)
        # Cutting towards 0 can widen a difference by 1, which is taken off beforehand.
        cut = np.trunc(parts * ((VOTE - 2.0) / np.maximum(spread, 1.0)))
        return np.asarray(np.where(spread <= VOTE, parts, cut).sum(axis=0))

    def levels(self, sums: Array) -> Integers:
        """How many units each winner's margin outlasts, shape (q,); private."""
        return outlasted(sums, VOTE * (2.0 if isinstance(self.adjacency, Replace) else 1.0))

    def scores(self, sums: Array, *, sampler: Sampler, noise_scale: float) -> Array:
        """Return 1 for the answer, 0 for all others."""
        response = self._response
        if noise_scale != 1:
            if not sampler.seeded:
                raise InvalidInput(f"noise_scale={noise_scale!r}: expected 1 in a release")
            # n_here records at epsilon / noise_scale are as n_private at epsilon.
            response = StabilityResponse(
                classes=self.classes,
                epsilon=self.per_answer / noise_scale,
                adjacency=self.adjacency,
            )
        labels = response.release(sums.argmax(axis=1), self.levels(sums), sampler=sampler)
        found = np.zeros(sums.shape)
        found[np.arange(len(labels)), labels] = 1.0
        return found


Response = GaussianResponse | MarginResponse
"""From weights of records to an answer."""


def outlasted(sums: Array, moved: float) -> Integers:
    """Return how many changes every winner's margin outlasts, shape (q,).

    Args:
        sums: shape (q, classes).
        moved: how far one change moves the sums of two labels apart at most.
    """
    ranked = np.sort(sums, axis=1)
    levels = np.maximum(np.ceil((ranked[:, -1] - ranked[:, -2]) / moved) - 1.0, 0.0)
    return np.asarray(levels.astype(np.int64))


def _centred(sums: Array) -> Array:
    """K times the sums, less their total: of K e_y - 1 in place of e_y."""
    return np.asarray(sums.shape[-1] * sums - sums.sum(axis=-1, keepdims=True))
