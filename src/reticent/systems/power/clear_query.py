"""Fitted releases of rows whose free attributes a public model reads as they are.

``ProtectedQuery`` releases the protected attributes, all or some, with noise. ``LikeliestQuery``
says which of the labels that are likeliest by the free ones it is, by randomised response. Either
releases log odds of the labels beside its answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from typing_extensions import override

from reticent.core.arrays import Array, Arrays, Integers
from reticent.core.coded_rows import CodedRows
from reticent.core.errors import CorruptBundle
from reticent.mechanisms import FiniteChannel, KNormMechanism
from reticent.networks import Network
from reticent.networks.serial import describe, rebuild
from reticent.noise import Sampler, SeededSampler
from reticent.systems.power.protection import UNIT
from reticent.systems.power.query import (
    Answers,
    ClearQuery,
    PowerSetting,
    dense,
    protection_of,
)
from reticent.tables.schema import TabularSchema
from reticent.training.public_forest import Forest
from reticent.training.public_models import BoostedTrees, label_shares, model_from

ANSWER_UNIT = 3.0
"""Radii that are one unit of what the public model reads."""

_DRAWS = 4  # of the noise, where chances of answers are asked for
_LEAST = 1e-12
_SUM = 1e-9


@dataclass(frozen=True, eq=False)
class ProtectedQuery(ClearQuery):
    """Everything that answering takes. The model is public.

    Guarantee:
        Neighbours have the same free coordinates, and protected ones that are at most
        ``protection.largest_step`` apart, which noise hides at ``plan.epsilon``. The model sees
        free coordinates and the private answer alone.

    Attributes:
        schema: the public description of rows.
        model: log odds of labels, of a one, the free coordinates and the answer.
        plan: mechanism and budget.
    """

    schema: TabularSchema
    model: Network
    plan: PowerSetting

    certificate: ClassVar[str] = "integers"

    def __post_init__(self) -> None:
        if (
            self.plan.mechanism != "clear-noise"
            or max(self.plan.columns, default=-1) >= len(self.protection.protected)
            or self.model.input_shape != (1 + len(self.protection.free) + self.values,)
        ):
            raise CorruptBundle("bundle: its model does not fit its mechanism, schema or radii")

    @property
    @override
    def constant(self) -> float:
        """Return how far answers of neighbours are apart in radii, rounding included."""
        return self.protection.largest_step / UNIT

    @property
    def values(self) -> int:
        """The number of numbers in one private answer."""
        return len(self.plan.columns) or len(self.protection.protected)

    @cached_property
    def mechanism(self) -> KNormMechanism:
        """The mechanism that answers."""
        return KNormMechanism(
            sensitivity=self.constant,
            epsilon=self.plan.epsilon,
            dimension=self.values,
            adjacency=self.adjacency,
            output_norm=self.protection.norm,
        )

    @property
    def outputs(self) -> int:
        """The number of released values per row."""
        return self.model.output_dimension + self.values

    def steps(self, rows: Array) -> Array:
        """Return what is hidden, in whole steps, shape (n, values). Private."""
        steps = self.protection.steps(rows)
        return steps[:, list(self.plan.columns)] if self.plan.columns else steps

    @override
    def exact(self, inputs: Array | CodedRows) -> Array:
        rows = dense(inputs)
        return self.read(rows, self.steps(rows) / UNIT)

    def private_answer(self, rows: Array, *, sampler: Sampler) -> Array:
        """The noisy answer alone, shape (n, values)."""
        return self.mechanism.release(self.steps(rows) / UNIT, sampler=sampler)

    def read(self, rows: Array, answer: Array) -> Array:
        """Return log odds that the public model gives, and the answer, shape (n, outputs)."""
        seen = np.column_stack([self.protection.given(rows), answer / ANSWER_UNIT])
        return np.column_stack([self.model.forward_each(seen), answer])

    @override
    def drawn(self, inputs: Array | CodedRows, *, sampler: Sampler) -> Array:
        rows = dense(inputs)
        return self.read(rows, self.private_answer(rows, sampler=sampler))

    @property
    @override
    def odds(self) -> int:
        return self.model.output_dimension

    @override
    def answers(self, rows: Array, *, seed: int) -> Answers:
        sampler = SeededSampler(seed)
        drawn = [self.private_answer(rows, sampler=sampler) for _ in range(_DRAWS)]
        return [self.read(rows, answer) for answer in drawn], [np.ones(len(rows))] * _DRAWS

    @override
    def parts(self) -> tuple[dict[str, Any], Arrays]:
        model, arrays = describe(self.model, "model")
        return {"model": model}, arrays

    @classmethod
    @override
    def rebuilt(
        cls, schema: TabularSchema, plan: PowerSetting, settings: dict[str, Any], arrays: Arrays
    ) -> Self:
        return cls(schema, rebuild(settings["model"], arrays, "model"), plan)


@dataclass(frozen=True, eq=False)
class LikeliestQuery(ClearQuery):
    """Everything that answering takes. Both models are public.

    Guarantee:
        Neighbours have the same free coordinates, so the same candidates, of which randomised
        response names one at ``plan.epsilon``. What else is released is computed from free
        coordinates and the named one.

    Attributes:
        schema: the public description of rows.
        given: scores of labels, of a one and the free coordinates.
        forest: shares of labels, of whole encoded rows.
        hits: shape (candidates + 1, candidates), how often the forest names each candidate where
            the right label is the first candidate, the second ..., or none of them. They are above
            0, and rows sum to 1.
        plan: mechanism and budget.
    """

    schema: TabularSchema
    given: BoostedTrees
    forest: Forest
    hits: Array
    plan: PowerSetting

    def __post_init__(self) -> None:
        size = self.plan.candidates
        fits = (
            self.plan.mechanism == "clear-code"
            and self.given.dimension == 1 + len(self.protection.free)
            and self.forest.dimension == self.schema.dimension
            and self.given.classes == self.forest.classes >= size
            and self.hits.dtype == np.float64
            and self.hits.shape == (size + 1, size)
        )
        if not (
            fits and (self.hits > 0).all() and (np.abs(self.hits.sum(axis=1) - 1.0) <= _SUM).all()
        ):
            raise CorruptBundle("bundle: its models do not fit its mechanism, schema or radii")

    @cached_property
    def mechanism(self) -> FiniteChannel:
        """The mechanism that answers: randomised response over candidates."""
        return FiniteChannel.response(
            self.plan.candidates, epsilon=self.plan.epsilon, adjacency=self.adjacency
        )

    @property
    def outputs(self) -> int:
        """The number of released values per row."""
        return self.odds + self.given.classes

    def given_scores(self, rows: Array) -> Array:
        """Return scores of all labels from what is free, shape (n, classes)."""
        return all_scores(self.given, self.protection.given(rows))

    def candidates(self, scores: Array) -> Integers:
        """Return labels that are likeliest by what is free, the likeliest first, shape (n,
        candidates).

        Args:
            scores: scores from ``given_scores``.
        """
        return np.asarray(np.argsort(-scores, axis=1, kind="stable")[:, : self.plan.candidates])

    def places(self, scores: Array, shares: Array) -> Integers:
        """Return the place of the candidate that the forest names, from 0, shape (n,). Private.

        Args:
            scores: scores from ``given_scores``.
            shares: shape (n, classes), the forest's, of the same rows.
        """
        risen = self.plan.choice == "risen"
        worth = shares / np.maximum(label_shares(scores), _LEAST) if risen else shares
        among = np.take_along_axis(worth, self.candidates(scores), axis=1)
        return np.asarray(among.argmax(axis=1), dtype=np.int64)

    def private_answer(self, rows: Array, *, sampler: Sampler) -> Integers:
        """The place of the candidate that is named, shape (n,)."""
        return self.mechanism.release(self._seen(rows)[1], sampler=sampler)

    def read(self, scores: Array, places: Integers) -> Array:
        """Return log odds of labels, and the label that is named as a one-hot vector, shape (n,
        outputs).

        Args:
            scores: scores from ``given_scores``. Nothing else is read of the record.
            places: shape (n,), places of the candidates that are named.
        """
        named, index = self.candidates(scores), np.arange(len(scores))
        odds = scores + self._log_chances[-1, places][:, None]
        for place in range(self.plan.candidates):
            column = named[:, place]
            odds[index, column] = scores[index, column] + self._log_chances[place, places]
        if len(self.given.start) == 1:
            odds = odds[:, 1:] - odds[:, :1]
        return np.column_stack([odds, np.eye(self.given.classes)[named[index, places]]])

    @override
    def exact(self, inputs: Array | CodedRows) -> Array:
        return self.read(*self._seen(dense(inputs)))

    @override
    def drawn(self, inputs: Array | CodedRows, *, sampler: Sampler) -> Array:
        scores, places = self._seen(dense(inputs))
        return self.read(scores, self.mechanism.release(places, sampler=sampler))

    def _seen(self, rows: Array) -> tuple[Array, Integers]:
        """Return scores by what is free, and the place of the candidate that is the right one."""
        scores = self.given_scores(rows)
        return scores, self.places(scores, self.forest.shares(CodedRows.of(rows)))

    @property
    @override
    def odds(self) -> int:
        return len(self.given.start)

    @override
    def answers(self, rows: Array, *, seed: int) -> Answers:
        return self.every_answer(*self._seen(rows))

    def every_answer(self, scores: Array, places: Integers) -> Answers:
        """Return what is released where each candidate is named, and how likely that is.

        Args:
            scores: scores from ``given_scores``.
            places: places of the candidates that are right, from ``places``.
        """
        named = range(self.plan.candidates)
        values = [self.read(scores, np.full(len(scores), place)) for place in named]
        return values, list(self.mechanism.matrix[places].T)

    @cached_property
    def _log_chances(self) -> Array:
        """The logarithm of how likely each candidate is named, lies included, shape of ``hits``."""
        return np.asarray(np.log(self.hits @ self.mechanism.matrix))

    @override
    def parts(self) -> tuple[dict[str, Any], Arrays]:
        return {}, {**self.given.describe(), **self.forest.describe(), "hits": self.hits}

    @classmethod
    @override
    def rebuilt(
        cls, schema: TabularSchema, plan: PowerSetting, settings: dict[str, Any], arrays: Arrays
    ) -> Self:
        columns = 1 + len(protection_of(schema, plan).free)
        given = model_from(BoostedTrees.kind, arrays, dimension=columns)
        assert isinstance(given, BoostedTrees)
        forest = Forest.from_arrays(arrays, dimension=schema.dimension)
        return cls(schema, given, forest, arrays["hits"], plan)


def all_scores(given: BoostedTrees, free: Array) -> Array:
    """Return scores of all labels, shape (n, classes).

    They are sums of doubles in a fixed order, so the same for neighbours to the last bit, in any
    batch.

    Args:
        given: the public model.
        free: free coordinates, from ``Protection.given``.
    """
    scores = given.scores(CodedRows.of(free))
    return np.column_stack([np.zeros(len(free)), scores]) if scores.shape[1] == 1 else scores
