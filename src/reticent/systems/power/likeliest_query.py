"""A fitted release of rows of which some attributes are free: which of the labels that are
likeliest by the free ones it is, by randomised response.

A public model of the free attributes names a few candidates, and a public forest of the whole
record one of them. What is released is a label, as a one-hot vector, and log odds of all labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Arrays, Integers
from reticent.core.coded_rows import CodedRows
from reticent.core.errors import CorruptBundle
from reticent.core.guarantees import Adjacency
from reticent.mechanisms import StabilityResponse
from reticent.noise import Sampler, SeededSampler
from reticent.release.bundle import rebuilding
from reticent.systems.power.certificates import EncoderBound
from reticent.systems.power.protection import Protection
from reticent.systems.power.public_forest import Forest
from reticent.systems.power.public_models import BoostedTrees, label_shares, model_from
from reticent.systems.power.query import PowerSetting, neighbours_within
from reticent.tables.schema import TabularSchema

_LEAST = 1e-12
_SUM = 1e-9


@dataclass(frozen=True, eq=False)
class LikeliestQuery:
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
            the right label is the first candidate, the second ..., or none of them; above 0, rows
            sum to 1.
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
    def protection(self) -> Protection:
        """What neighbours are; of the plan and the schema, and of nothing else."""
        assert self.plan.radius is not None
        return Protection(self.schema, self.plan.radius)

    @property
    def adjacency(self) -> Adjacency:
        """What neighbours are: see ``neighbours_within``."""
        return neighbours_within(self.plan.radius, self.schema)

    @property
    def bound(self) -> EncoderBound:
        """No constant is needed: any two candidates are told apart by at most e^epsilon."""
        return EncoderBound("none", 0.0)

    @property
    def certificate(self) -> str:
        """Kind of ``bound``."""
        return self.bound.kind

    @cached_property
    def mechanism(self) -> StabilityResponse:
        """The mechanism that answers, at level 0 only: randomised response over candidates."""
        return StabilityResponse(
            classes=self.plan.candidates, epsilon=self.plan.epsilon, adjacency=self.adjacency
        )

    @property
    def outputs(self) -> int:
        """Released values per row."""
        return len(self.given.start) + self.given.classes

    def encode(self, table: npt.NDArray[Any]) -> CodedRows:
        """Checked rows of a table, ready to be answered; raises what ``TabularSchema.code``
        raises.
        """
        return self.schema.code(table)

    def given_scores(self, rows: Array) -> Array:
        """Scores of all labels from what is free, shape (n, classes)."""
        return all_scores(self.given, self.protection.given(rows))

    def candidates(self, scores: Array) -> Integers:
        """Labels that are likeliest by what is free, the likeliest first, shape (n, candidates).

        Args:
            scores: from ``given_scores``.
        """
        return np.asarray(np.argsort(-scores, axis=1, kind="stable")[:, : self.plan.candidates])

    def places(self, scores: Array, shares: Array) -> Integers:
        """Which candidate the forest names, from 0, shape (n,). Private.

        Args:
            scores: from ``given_scores``.
            shares: shape (n, classes), the forest's, of the same rows.
        """
        risen = self.plan.choice == "risen"
        worth = shares / np.maximum(label_shares(scores), _LEAST) if risen else shares
        among = np.take_along_axis(worth, self.candidates(scores), axis=1)
        return np.asarray(among.argmax(axis=1), dtype=np.int64)

    def private_answer(self, rows: Array, *, sampler: Sampler) -> Integers:
        """The place of the candidate that is named, shape (n,)."""
        return self._told(rows, self.given_scores(rows), sampler=sampler)

    def read(self, scores: Array, places: Integers) -> Array:
        """Log odds of labels, and the label that is named as a one-hot vector, shape (n, outputs).

        Args:
            scores: from ``given_scores``: nothing else is read of the record.
            places: shape (n,), of the candidates that are named.
        """
        named, index = self.candidates(scores), np.arange(len(scores))
        odds = scores + self._log_chances[-1, places][:, None]
        for place in range(self.plan.candidates):
            column = named[:, place]
            odds[index, column] = scores[index, column] + self._log_chances[place, places]
        if len(self.given.start) == 1:
            odds = odds[:, 1:] - odds[:, :1]
        return np.column_stack([odds, np.eye(self.given.classes)[named[index, places]]])

    def exact(self, inputs: Array | CodedRows) -> Array:
        """What would be released without noise, shape (n, outputs). Private."""
        rows = _dense(inputs)
        scores = self.given_scores(rows)
        return self.read(scores, self.places(scores, self.forest.shares(CodedRows.of(rows))))

    def answer(
        self, inputs: Array | CodedRows, *, sampler: Sampler
    ) -> tuple[Array, npt.NDArray[np.bool_]]:
        """One vector for each encoded row, shape (n, outputs), and which of them are withheld:
        none.

        Args:
            inputs: rows that ``encode`` gave, or in full, shape (n, dimension).
            sampler: source of randomness.
        """
        rows = _dense(inputs)
        scores = self.given_scores(rows)
        told = self._told(rows, scores, sampler=sampler)
        return self.read(scores, told), np.zeros(len(rows), dtype=np.bool_)

    def _told(self, rows: Array, scores: Array, *, sampler: Sampler) -> Integers:
        places = self.places(scores, self.forest.shares(CodedRows.of(rows)))
        return self.mechanism.release(places, np.zeros(len(rows), dtype=np.int64), sampler=sampler)

    @cached_property
    def _log_chances(self) -> Array:
        """Logarithm of how likely each candidate is named, lies included, shape of ``hits``."""
        right = float(self.mechanism.right_probabilities[0])
        wrong = float(self.mechanism.wrong_probabilities[0])
        return np.asarray(np.log(self.hits * (right - wrong) + wrong))

    def rehearse(self) -> None:
        """Answers about a corner of the public box, with a seed, and forgets it: what cannot answer
        fails before any charge.
        """
        _ = self.mechanism.event
        self.answer(self.schema.domain.upper[None, :], sampler=SeededSampler(0))

    def describe(self) -> tuple[dict[str, Any], Arrays]:
        """Plain JSON values and named arrays that ``from_description`` reads."""
        settings = {"schema": self.schema.to_dict(), "plan": self.plan.to_dict()}
        return settings, {**self.given.describe(), **self.forest.describe(), "hits": self.hits}

    @classmethod
    def from_description(cls, settings: dict[str, Any], arrays: Arrays) -> LikeliestQuery:
        """The query that ``describe`` took apart.

        Raises:
            CorruptBundle: fields or arrays that are missing or do not fit together.
        """
        with rebuilding():
            schema = TabularSchema.from_dict(settings["schema"])
            plan = PowerSetting.from_dict(settings["plan"], schema)
            if plan.radius is None:
                raise CorruptBundle("bundle: its mechanism needs a radius")
            columns = 1 + len(Protection(schema, plan.radius).free)
            given = model_from(BoostedTrees.kind, arrays, dimension=columns)
            assert isinstance(given, BoostedTrees)
            forest = Forest.from_arrays(arrays, dimension=schema.dimension)
            query = cls(schema, given, forest, arrays["hits"], plan)
            query.rehearse()
        return query


def all_scores(given: BoostedTrees, free: Array) -> Array:
    """Scores of all labels, shape (n, classes): sums of doubles in a fixed order, so the same for
    neighbours to the last bit, in any batch.

    Args:
        given: the public model.
        free: from ``Protection.given``.
    """
    scores = given.scores(CodedRows.of(free))
    return np.column_stack([np.zeros(len(free)), scores]) if scores.shape[1] == 1 else scores


def _dense(inputs: Array | CodedRows) -> Array:
    return inputs.dense() if isinstance(inputs, CodedRows) else inputs
