"""The releases of an individual-budget classifier, and the one place where it answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from reticent.accounting import (
    IndividualFilter,
    IndividualGaussianBudget,
    PrivacyEvent,
    ZeroConcentratedCost,
    calibrate_individual_gaussian,
)
from reticent.core.arrays import Integers
from reticent.core.checks import count, probability, real
from reticent.core.errors import BudgetExceeded, InvalidParameter
from reticent.core.guarantees import AddRemove, Guarantee
from reticent.core.turns import Turn
from reticent.neighbours import LEAST_WEIGHT, WEIGHT_STEPS, RadiusKernel
from reticent.neighbours.integer_points import Points
from reticent.noise import Sampler
from reticent.systems.private_knn.held_records import HeldRecords

_ROWS = 256
_MOST_PRECISION = 1024
_MOST_VOTES = 2.0**20


@dataclass(frozen=True, kw_only=True)
class IndividualNoise:
    """Noise, looks and cap of an individual-budget classifier, from public numbers.

    A record with weight w (of WEIGHT_STEPS) adds w (c e_label - 1) to a sum over c classes, of
    squared norm w^2 c (c - 1). What all classes share tells nothing, so it is left out. That saves
    a factor sqrt(1 - 1/c) of noise over one vote for the label. A query is *looked* at several
    times, with precisions ``looks``, until one class leads by ``lead`` standard deviations.

    Attributes:
        budget: the cap of one record, and what it proves.
        delta: delta of the total.
        classes: number of classes, at least 2.
        looks: precisions, whole numbers of at least 1.
        lead: lead in standard deviations of the difference of two classes, at least 0.
        adjacency: the protected difference.
    """

    budget: IndividualGaussianBudget
    delta: float
    classes: int
    looks: tuple[int, ...]
    lead: float
    adjacency: AddRemove

    @classmethod
    def of(
        cls,
        *,
        epsilon: float,
        delta: float,
        classes: int,
        votes: float,
        looks: Sequence[int],
        lead: float,
        adjacency: AddRemove,
    ) -> IndividualNoise:
        """Return the plan with the least noise that keeps (``epsilon``, ``delta``).

        Args:
            epsilon, delta: total of everything that is ever released.
            classes: number of classes, at least 2.
            votes: number of whole votes, at all looks, that one record gives before it retires, 1
                to 2^20.
            looks: precisions.
            lead: the attribute of that name.
            adjacency: the protected difference.

        Raises:
            InvalidParameter, CalibrationFailed: a parameter out of its range.
        """
        probability(delta, name="delta", allow_zero=False)
        if isinstance(looks, (str, bytes)) or not isinstance(looks, Sequence) or not looks:
            raise InvalidParameter(f"looks={looks!r}: expected whole numbers, as (1,) or (1, 1, 2)")
        precisions = tuple(count(look, name="looks") for look in looks)
        if sum(precisions) > _MOST_PRECISION:
            raise InvalidParameter(f"looks={looks!r}: expected a sum of at most {_MOST_PRECISION}")
        if not 1 <= real(votes, name="votes") <= _MOST_VOTES:
            raise InvalidParameter(f"votes={votes!r}: expected 1 to 2**20")
        if not real(lead, name="lead") >= 0:
            raise InvalidParameter(f"lead={lead!r}: expected a number of at least 0")
        norm = count(classes, name="classes", minimum=2) * (classes - 1)
        budget = calibrate_individual_gaussian(
            epsilon=epsilon,
            delta=delta,
            cap=norm * math.floor(votes * sum(precisions) * WEIGHT_STEPS**2),
            least=norm * min(precisions) * LEAST_WEIGHT**2,
            coordinates=classes,
            precision=max(precisions),
        )
        return cls(
            budget=budget,
            delta=delta,
            classes=classes,
            looks=precisions,
            lead=float(lead),
            adjacency=adjacency,
        )

    @property
    def weight_cap(self) -> int:
        """The most that a record spends in precision times squared weight: the filter's cap."""
        return self.budget.cap // (self.classes * (self.classes - 1))

    @property
    def sigma_votes(self) -> float:
        """The noise of a class's count, in votes, if a query gets all its looks."""
        return self.budget.sigma / (self.classes * WEIGHT_STEPS * math.sqrt(sum(self.looks)))

    @cached_property
    def guarantee(self) -> Guarantee:
        """The cost of everything that one session ever releases."""
        return Guarantee(self.budget.epsilon(delta=self.delta), self.delta, self.adjacency)

    @cached_property
    def event(self) -> PrivacyEvent:
        """The same as one cost, as a ledger books it."""
        return PrivacyEvent(
            "individual votes", self.guarantee, ZeroConcentratedCost(self.budget.rho)
        )


class IndividualSession:
    """Answer queries from records that retire one by one.

    **Guarantee.** All sums that one session ever draws cost ``plan.guarantee`` together. Their
    number is without limit, queries and stops may be chosen from earlier ones, and records come and
    go: a record takes part only while the filter lets it. A forked or copied session has no budget.

    Args:
        plan: noise and cap.
        noise_scale: noise in units of the plan's: 1 for a release. The choice of settings takes the
            number of records there over that of private ones.
        cap_scale: cap in units of the plan's, at most 1, for that choice with fewer queries.

    Attributes:
        turn: lock that is held while queries are answered, so that two threads cannot both find
            room for what only one of them has. Whoever changes the records has to hold it too.
    """

    def __init__(
        self, plan: IndividualNoise, *, noise_scale: float = 1.0, cap_scale: float = 1.0
    ) -> None:
        self.plan = plan
        self.filter = IndividualFilter(
            cap=min(plan.weight_cap, max(1, round(plan.weight_cap * cap_scale)))
        )
        sigma = plan.budget.sigma * noise_scale
        # Rounded up twice: the quotient and the root may each have been rounded down.
        self._sigmas = [
            math.nextafter(math.nextafter(sigma / math.sqrt(look), math.inf), math.inf)
            for look in plan.looks
        ]
        self._sigma = sigma
        self.turn = Turn()

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in self.__dict__.items() if name != "turn"}
        # Copied here, so that a shallow copy does not share the budget of the original.
        return {**kept, "filter": copy(self.filter)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, turn=Turn())

    @property
    def is_here(self) -> bool:
        """Return whether anything may be asked: not in a forked child, nor in a copy."""
        return self.filter.is_here

    def answer(
        self,
        held: HeldRecords,
        queries: Points,
        kernels: Sequence[RadiusKernel],
        *,
        sampler: Sampler,
    ) -> Integers:
        """Return a label for each query, shape (n,): the class with the largest noisy sum."""
        return np.asarray(self.sums(held, queries, kernels, sampler=sampler).argmax(axis=1))

    def sums(
        self,
        held: HeldRecords,
        queries: Points,
        kernels: Sequence[RadiusKernel],
        *,
        sampler: Sampler,
    ) -> Integers:
        """Return noisy sums over the looks of each query: precision times steps of vote.

        Args:
            held: the records, with numbers in this session's filter.
            queries: shape (n, d), integer points.
            kernels: one public kernel for each query.
            sampler: source of randomness.

        Returns:
            Shape (n, classes), int64.

        Raises:
            BudgetExceeded: a forked or copied session. Nothing is computed.
        """
        if not self.is_here:
            raise BudgetExceeded(
                f"queries: requested {len(queries)}; a forked or copied session has no budget, "
                "because each copy would count by itself. Ask the classifier that was fitted, in "
                "its process"
            )
        limits = np.array([kernel.squared_radius for kernel in kernels], dtype=np.int64)
        total = np.zeros((len(queries), self.plan.classes), dtype=np.int64)
        for first in range(0, len(queries), _ROWS):
            part = slice(first, first + _ROWS)
            size = (len(queries[part]), self.plan.classes)
            noise = [sampler.discrete_gaussian(size, sigma=sigma) for sigma in self._sigmas]
            # Block by block, so that who is to be forgotten need not wait for all queries.
            with self.turn:
                found = held.near(queries[part], limits[part])
                for row, (numbers, squared, labels) in enumerate(found):
                    weights = kernels[first + row].weights(squared)
                    some = weights > 0
                    total[first + row] = self._looked(
                        numbers[some], weights[some], labels[some], [look[row] for look in noise]
                    )
        return total

    def _looked(
        self, numbers: Integers, weights: Integers, labels: Integers, noise: Sequence[Integers]
    ) -> Integers:
        """Answer one query, look after look, until a class leads clearly."""
        classes, costs = self.plan.classes, weights * weights
        total, precision = np.zeros(classes, dtype=np.int64), 0
        for look, drawn in zip(self.plan.looks, noise, strict=True):
            inside = self.filter.admit(numbers, look * costs)
            # Sums of whole numbers below 2^53 are exact in double precision.
            votes = np.bincount(labels[inside], weights=weights[inside], minlength=classes)
            counts = votes.astype(np.int64)
            total += look * self._noisy(classes * counts - counts.sum(), drawn)
            precision += look
            below, top = np.partition(total, classes - 2)[-2:]
            if float(top - below) > self.lead_at(precision):
                break
        return total

    def _noisy(self, exact: Integers, drawn: Integers) -> Integers:
        """Draw one look: the exact sum, which is private, and its noise."""
        return np.asarray(exact + drawn)

    def lead_at(self, precision: int) -> float:
        """Return how far a class has to be ahead after looks of this precision to be the answer."""
        return self.plan.lead * self._sigma * math.sqrt(2 * precision)
