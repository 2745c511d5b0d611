"""A fitted release of score bins: encoded row -> public model -> bin -> channel, as one-hot
outputs.
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
from reticent.mechanisms import RecordChannel
from reticent.noise import Sampler, SeededSampler
from reticent.release.bundle import rebuilding
from reticent.systems.power.certificates import EncoderBound
from reticent.systems.power.public_models import PublicModel, model_from
from reticent.systems.power.query import PowerSetting, neighbours_within
from reticent.tables.schema import TabularSchema


@dataclass(frozen=True, eq=False)
class ScoreBins:
    """A public cut of scores into bins.

    Two classes: the log odds of the second against rising thresholds. Several: the bin whose
    prototype, a distribution of labels, has the least cross-entropy to the softmax of the scores.

    Attributes:
        table: shape (1, bins - 1), rising thresholds, for one score; else shape (bins, scores),
            logarithms of the prototypes.
        scores: how many scores there are.
    """

    table: Array
    scores: int

    def __post_init__(self) -> None:
        table = self.table
        fits = table.ndim == 2 and table.dtype == np.float64 and bool(np.isfinite(table).all())
        if fits and self.scores == 1:
            fits = len(table) == 1 and table.size >= 1 and bool((np.diff(table[0]) > 0).all())
        elif fits:
            fits = table.shape[1] == self.scores and len(table) >= 2
        if not fits:
            raise CorruptBundle("bundle: its bins do not fit the scores of its model")

    @property
    def count(self) -> int:
        """Number of bins."""
        return self.table.shape[1] + 1 if self.scores == 1 else len(self.table)

    def of(self, scores: Array) -> Integers:
        """The bin of each row of ``scores``, shape (n,)."""
        if self.scores == 1:
            return np.asarray(
                np.searchsorted(self.table[0], scores[:, 0], side="right"), dtype=np.int64
            )
        top = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares = top / top.sum(axis=1, keepdims=True)
        # One product per prototype: a row's bin does not depend on the other rows.
        worth = np.stack([(shares * prototype).sum(axis=1) for prototype in self.table], axis=1)
        return np.asarray(worth.argmax(axis=1), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class ScoreCodeQuery:
    """Everything that answering takes. Model, bins and channel are public.

    Attributes:
        schema: the public description of rows.
        model: public, of encoded rows.
        bins: of its scores.
        shares: shape (bins, outputs), the channel in multiples of 2^-32.
        plan: mechanism and budget.
    """

    schema: TabularSchema
    model: PublicModel
    bins: ScoreBins
    shares: Integers
    plan: PowerSetting

    @property
    def adjacency(self) -> Adjacency:
        """Any two records, or records within the radius, as ``PowerQuery`` has them."""
        return neighbours_within(self.plan.radius, self.schema)

    @property
    def bound(self) -> EncoderBound:
        """No constant is needed: any two bins are told apart by at most e^epsilon."""
        return EncoderBound("none", 0.0)

    @property
    def certificate(self) -> str:
        """Kind of ``bound``."""
        return self.bound.kind

    @cached_property
    def mechanism(self) -> RecordChannel:
        """The mechanism that answers; its table is checked exactly when it is made."""
        return RecordChannel(
            shares=self.shares, epsilon=self.plan.epsilon, adjacency=self.adjacency
        )

    @property
    def outputs(self) -> int:
        """Released values per row."""
        return self.mechanism.outputs

    def encode(self, table: npt.NDArray[Any]) -> CodedRows:
        """Checked rows of a table, ready to be answered; raises what ``TabularSchema.code``
        raises.
        """
        return self.schema.code(table)

    def exact(self, inputs: Array | CodedRows) -> Array:
        """The mean of what is released about each row, shape (n, outputs). Private."""
        return np.asarray(self.mechanism.matrix[self._bins(inputs)])

    def answer(
        self, inputs: Array | CodedRows, *, sampler: Sampler
    ) -> tuple[Array, npt.NDArray[np.bool_]]:
        """One one-hot vector for each encoded row, shape (n, outputs), and which of them are
        withheld: none.

        Args:
            inputs: rows that ``encode`` gave, or in full, shape (n, dimension).
            sampler: source of randomness.
        """
        drawn = self.mechanism.release(self._bins(inputs), sampler=sampler)
        return np.asarray(np.eye(self.outputs)[drawn]), np.zeros(len(inputs), dtype=np.bool_)

    def _bins(self, inputs: Array | CodedRows) -> Integers:
        rows = inputs if isinstance(inputs, CodedRows) else CodedRows.of(inputs)
        return self.bins.of(self.model.scores(rows))

    def rehearse(self) -> None:
        """Answers about a corner of the public box, with a seed, and forgets it: what cannot answer
        fails before any charge.
        """
        _ = self.mechanism.event
        self.answer(self.schema.domain.upper[None, :], sampler=SeededSampler(0))

    def describe(self) -> tuple[dict[str, Any], Arrays]:
        """Plain JSON values and named arrays that ``from_description`` reads."""
        settings = {"schema": self.schema.to_dict(), "plan": self.plan.to_dict()}
        arrays = {
            **self.model.describe(),
            "bins": self.bins.table,
            "channel": np.asarray(self.mechanism.shares),
        }
        return settings, arrays

    @classmethod
    def from_description(cls, settings: dict[str, Any], arrays: Arrays) -> ScoreCodeQuery:
        """The query that ``describe`` took apart; its channel is checked again.

        Raises:
            CorruptBundle: fields or arrays that are missing or do not fit together.
        """
        with rebuilding():
            schema = TabularSchema.from_dict(settings["schema"])
            plan = PowerSetting.from_dict(settings["plan"], schema)
            model = model_from(plan.model, arrays, dimension=schema.dimension)
            bins = ScoreBins(arrays["bins"], len(model.start))
            query = cls(schema, model, bins, arrays["channel"], plan)
            if model.dimension != schema.dimension or bins.count != query.mechanism.bins:
                raise CorruptBundle("bundle: its model does not fit its schema or its channel")
            query.rehearse()
        return query
