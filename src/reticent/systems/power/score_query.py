"""A fitted release of score bins: encoded row -> public model -> bin -> channel, as one-hot
outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from typing_extensions import override

from reticent.core.arrays import Array, Arrays, Integers
from reticent.core.coded_rows import CodedRows
from reticent.core.errors import CorruptBundle
from reticent.grids.shares import Shares
from reticent.mechanisms import AnyTwo, FiniteChannel
from reticent.noise import Sampler
from reticent.systems.power.query import PowerSetting, RowQuery, coded, neighbours_within
from reticent.tables.schema import TabularSchema
from reticent.training.public_models import PublicModel, model_from


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
class ScoreCodeQuery(RowQuery):
    """A release of score bins. Model, bins and channel are public.

    Attributes:
        schema: the public description of rows.
        model: public, of encoded rows.
        bins: of its scores.
        shares: shape (outputs, bins), the channel in multiples of 2^-32.
        plan: mechanism and budget.
    """

    schema: TabularSchema
    model: PublicModel
    bins: ScoreBins
    shares: Shares
    plan: PowerSetting

    @cached_property
    def mechanism(self) -> FiniteChannel:
        """The mechanism that answers; its table is checked exactly when it is made."""
        return FiniteChannel(
            nodes=AnyTwo(self.bins.count),
            shares=self.shares,
            epsilon=self.plan.epsilon,
            adjacency=self.adjacency,
        )

    @property
    def outputs(self) -> int:
        """Released values per row."""
        return self.mechanism.classes

    @override
    def exact(self, inputs: Array | CodedRows) -> Array:
        """The mean of what is released about each row, shape (n, outputs). Private."""
        return np.asarray(self.mechanism.matrix[self.nodes(inputs)])

    @override
    def drawn(self, inputs: Array | CodedRows, *, sampler: Sampler) -> Array:
        told = self.mechanism.release(self.nodes(inputs), sampler=sampler)
        return np.asarray(np.eye(self.outputs)[told])

    def nodes(self, inputs: Array | CodedRows) -> Integers:
        """The bin of each row, shape (n,): a node of the channel. Private."""
        return self.bins.of(self.model.scores(coded(inputs)))

    @override
    def parts(self) -> tuple[dict[str, Any], Arrays]:
        channel, arrays = self.mechanism.describe()
        return {"channel": channel}, {**self.model.describe(), "bins": self.bins.table, **arrays}

    @classmethod
    @override
    def rebuilt(
        cls, schema: TabularSchema, plan: PowerSetting, settings: dict[str, Any], arrays: Arrays
    ) -> Self:
        model = model_from(plan.model, arrays, dimension=schema.dimension)
        bins = ScoreBins(arrays["bins"], len(model.start))
        channel = FiniteChannel.from_description(
            settings["channel"],
            arrays,
            epsilon=plan.epsilon,
            adjacency=neighbours_within(plan.radius, schema),
        )
        if model.dimension != schema.dimension or channel.nodes != AnyTwo(bins.count):
            raise CorruptBundle("bundle: its model does not fit its schema or its channel")
        return cls(schema, model, bins, channel.shares, plan)
