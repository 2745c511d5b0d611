"""A fitted release of rows of which some attributes are free: a public model of the free ones and
of the protected ones, all or some, with noise.

What is released is the noisy answer, and what the model makes of it and of the free coordinates:
log odds of the labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from typing_extensions import override

from reticent.core.arrays import Array, Arrays
from reticent.core.coded_rows import CodedRows
from reticent.core.errors import CorruptBundle
from reticent.mechanisms import KNormMechanism
from reticent.networks import Network
from reticent.networks.serial import describe, rebuild
from reticent.noise import Sampler, SeededSampler
from reticent.systems.power.protection import UNIT
from reticent.systems.power.query import Answers, ClearQuery, PowerSetting, dense
from reticent.tables.schema import TabularSchema

ANSWER_UNIT = 3.0
"""Radii that are one unit of what the public model reads."""

_DRAWS = 4  # of the noise, where chances of answers are asked for


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
