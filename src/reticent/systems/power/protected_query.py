"""A fitted release of rows of which some attributes are free: a public model of the free ones and
of one noisy answer about the others.

Three answers. *Scores with noise* and *level response* read Lipschitz scores, *clear and noise* the
protected coordinates themselves, all or some of them. What is released is the answer, and what a
public model makes of it and of the free coordinates: log odds of the labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.core.arrays import Array, Arrays
from reticent.core.coded_rows import CodedRows
from reticent.core.errors import CorruptBundle
from reticent.core.norms import Norm
from reticent.mechanisms import KNormMechanism, StabilityResponse
from reticent.networks import Network
from reticent.networks.serial import describe, rebuild
from reticent.noise import Sampler
from reticent.systems.power.certificates import EncoderBound
from reticent.systems.power.lipschitz_scores import LipschitzScores
from reticent.systems.power.protection import UNIT
from reticent.systems.power.query import PowerSetting, RowQuery, dense, protection_of
from reticent.tables.schema import TabularSchema

NOISY = ("score-noise", "score-levels", "clear-noise")
"""Mechanisms that a ``ProtectedQuery`` answers by."""

ANSWER_UNIT = 3.0
"""Radii that are one unit of what the public model reads."""


@dataclass(frozen=True, eq=False)
class ProtectedQuery(RowQuery):
    """Everything that answering takes. Scores and model are public.

    Guarantee:
        Neighbours have the same free coordinates, and scores that differ by at most
        ``protection.largest_step`` (``LipschitzScores``), which noise or levels hide at
        ``plan.epsilon``. The model sees free coordinates and the private answer alone.

    Attributes:
        schema: the public description of rows.
        scores: of protected coordinates given the free ones; None for "clear-noise".
        model: log odds of labels, of a one, the free coordinates and the answer.
        plan: mechanism and budget.
    """

    schema: TabularSchema
    scores: LipschitzScores | None
    model: Network
    plan: PowerSetting

    def __post_init__(self) -> None:
        if (
            self.plan.mechanism not in NOISY
            or (self.scores is None) != (self.plan.mechanism == "clear-noise")
            or (self.scores is not None and self.scores.protection != self.protection)
            or (self.plan.mechanism == "score-levels" and self.values != 1)
            or max(self.plan.columns, default=-1) >= len(self.protection.protected)
            or self.model.input_shape != (1 + len(self.protection.free) + self.values,)
        ):
            raise CorruptBundle("bundle: its scores do not fit its mechanism, schema or radii")

    @property
    @override
    def bound(self) -> EncoderBound:
        """The constant of the scores in radii, rounding included."""
        return EncoderBound("integers", self.protection.largest_step / UNIT)

    @property
    def values(self) -> int:
        """Numbers in one private answer."""
        if self.scores is not None:
            return self.scores.outputs
        return len(self.plan.columns) or len(self.protection.protected)

    @cached_property
    def mechanism(self) -> KNormMechanism | StabilityResponse:
        """The mechanism that answers."""
        if self.plan.mechanism == "score-levels":
            return StabilityResponse(classes=2, epsilon=self.plan.epsilon, adjacency=self.adjacency)
        return KNormMechanism(
            sensitivity=self.bound.constant,
            epsilon=self.plan.epsilon,
            dimension=self.values,
            adjacency=self.adjacency,
            output_norm=self.protection.norm if self.scores is None else Norm.LINF,
        )

    @property
    def outputs(self) -> int:
        """Released values per row."""
        return self.model.output_dimension + self.values

    def steps(self, rows: Array) -> Array:
        """What is hidden, in whole steps, shape (n, values). Private."""
        if self.scores is not None:
            return self.scores.steps(rows)
        steps = self.protection.steps(rows)
        return steps[:, list(self.plan.columns)] if self.plan.columns else steps

    def levels(self, rows: Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """For "score-levels" the side of the score and its distance from the other side in whole
        radii, shapes (n,). Neighbours' levels differ by at most 1, and their sides at level 0 only.
        """
        steps = self.steps(rows)[:, 0].astype(np.int64)
        sides = (steps >= 0).astype(np.int64)
        # -1 is the first step of the other side, so that sides are cut alike.
        return sides, np.where(steps >= 0, steps, -steps - 1) // self.protection.largest_step

    @override
    def exact(self, inputs: Array | CodedRows) -> Array:
        rows = dense(inputs)
        if isinstance(self.mechanism, StabilityResponse):
            answer = np.asarray(2.0 * self.levels(rows)[0][:, None] - 1.0, dtype=np.float64)
        else:
            answer = self.steps(rows) / UNIT
        return self.read(rows, answer)

    def private_answer(self, rows: Array, *, sampler: Sampler) -> Array:
        """The noisy answer alone, shape (n, values); 1 or -1 where it is a side."""
        mechanism = self.mechanism
        if isinstance(mechanism, StabilityResponse):
            told = mechanism.release(*self.levels(rows), sampler=sampler)
            return np.asarray(2.0 * told[:, None] - 1.0)
        return mechanism.release(self.steps(rows) / UNIT, sampler=sampler)

    def read(self, rows: Array, answer: Array) -> Array:
        """Log odds that the public model gives, and the answer, shape (n, outputs)."""
        scale = 1.0 if self.plan.mechanism == "score-levels" else ANSWER_UNIT
        seen = np.column_stack([self.protection.given(rows), answer / scale])
        return np.column_stack([self.model.forward_each(seen), answer])

    @override
    def drawn(self, inputs: Array | CodedRows, *, sampler: Sampler) -> Array:
        rows = dense(inputs)
        return self.read(rows, self.private_answer(rows, sampler=sampler))

    @override
    def parts(self) -> tuple[dict[str, Any], Arrays]:
        model, arrays = describe(self.model, "model")
        scores, weights = (None, {}) if self.scores is None else self.scores.describe()
        return {"model": model, "scores": scores}, {**arrays, **weights}

    @classmethod
    @override
    def rebuilt(
        cls, schema: TabularSchema, plan: PowerSetting, settings: dict[str, Any], arrays: Arrays
    ) -> Self:
        protection, described = protection_of(schema, plan), settings["scores"]
        scores = (
            None
            if described is None
            else LipschitzScores.from_description(protection, described, arrays)
        )
        return cls(schema, scores, rebuild(settings["model"], arrays, "model"), plan)
