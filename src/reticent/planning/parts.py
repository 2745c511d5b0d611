"""Public rows in the roles of public rows and of private records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from typing_extensions import override

from reticent.core.arrays import Array, Integers
from reticent.planning.tasks import Task
from reticent.systems.votes.outputs import Columns
from reticent.systems.votes.public_start import PublicStartClassifier
from reticent.training.public_pool import ClassColumn, PublicPool, public_folds, usual_pool
from reticent.training.public_space import PublicSpace
from reticent.training.public_start import KINDS, RowDetails, offset_steps

_WHITENING = 0.5

Fold = tuple[Integers, Integers]


@dataclass(frozen=True, eq=False)
class PublicParts:
    """Labelled public rows, and shared results of several methods.

    In each fold the rows outside stand in for public rows and, a second time, for private records.
    A stand-in has the offset that models without its own label gave it. So every row serves both
    roles, and the rows of the fold are predicted by models that never saw their labels.

    Attributes:
        rows: rows, shape (m, d).
        codes: places of labels, shape (m,).
        task: the task.
        seed: seed of simulated noise.
    """

    rows: Array
    codes: Integers
    task: Task
    seed: int

    @cached_property
    def folds(self) -> list[Fold]:
        """The places of stand-ins and of rows to predict, or none if labels are too few."""
        return public_folds(self.rows, self.codes)

    @property
    def seeds(self) -> list[int]:
        """The seeds of the draws of noise."""
        return [self.seed + draw for draw in range(_DRAWS)]

    @cached_property
    def scaled(self) -> Array:
        """The columns in standard deviations, shape (m, d)."""
        return RowDetails.around(self.rows, (), table=False).scaled(self.rows)

    @cached_property
    def offsets(self) -> Array:
        """The log probabilities by public models that did not see the row, shape (m, classes)."""
        models = usual_pool(len(self.rows), self.task.classes, table=self.task.rows == "table")
        return PublicPool.fitted(self.scaled, self.codes, self.task.classes, models)[1]

    @cached_property
    def shares(self) -> Array:
        """The log shares of labels outside the row's fold, shape (m, classes)."""
        found = np.zeros((len(self.rows), self.task.classes))
        for train, test in self.folds:
            counts = np.bincount(self.codes[train], minlength=self.task.classes) + 1.0
            found[test] = np.log(counts / counts.sum())
        return found

    @cached_property
    def points(self) -> list[Array]:
        """The points of all rows by features of a fold's stand-ins, for each fold."""
        found = []
        for train, _ in self.folds:
            told = ClassColumn(self.codes[train], self.task.classes, [])
            details = RowDetails.around(self.rows[train], [told], table=self.task.rows == "table")
            made = details.details(self.rows, details.scaled(self.rows))
            space = PublicSpace.around(
                made[train],
                components=min(KINDS[self.task.rows], len(train) - 1),
                whitening=_WHITENING,
                lower_upper=None,
                alike=True,
            )
            found.append(space.points(made))
        return found

    def started(self, tasks: Sequence[Task], *, alone: bool) -> list[list[Array]]:
        """Return probabilities by ``PublicStartClassifier``, for each task and draw of the noise.

        Args:
            tasks: tasks that differ in their totals only.
            alone: whether it starts from the shares of labels, and not from public models.

        Returns:
            Arrays of shape (m, classes).
        """
        size = (len(self.rows), self.task.classes)
        found = [[np.zeros(size) for _ in self.seeds] for _ in tasks]
        offsets = self.shares if alone else self.offsets
        numbers = np.arange(len(self.rows), dtype=np.float64)[:, None]
        for (train, test), points in zip(self.folds, self.points, strict=True):
            model = OnStandIns(
                epsilon=self.task.guarantee.epsilon,
                delta=self.task.guarantee.delta,
                classes=list(range(self.task.classes)),
                counting=self.task.counting,
                records=len(train),
            )
            model.given = KnownPoints(
                np.hstack([points, offset_steps(offsets)]), (slice(0, self.task.classes),)
            )
            model.given_offsets, model.alone = offsets[train], alone
            model.planned = self.task.n_private
            fits = model.simulate_fits(
                numbers[train],
                self.codes[train],
                public_X=numbers[train],
                public_y=self.codes[train],
                totals=[(one.guarantee.epsilon, one.guarantee.delta) for one in tasks],
                seeds=self.seeds,
                noise_scale=len(train) / self.task.n_private,
            )
            for draws in found:
                for draw in draws:
                    draw[test] = next(fits).predict_proba(numbers[test])
        return found


_DRAWS = 3


@dataclass(frozen=True, eq=False)
class KnownPoints:
    """A start for known points, whose input is numbers of rows.

    Attributes:
        table: points and offsets of all rows, shape (m, dimension).
        parts: places of offsets among a row's coordinates.
    """

    table: Array
    parts: tuple[slice, ...]

    @property
    def space(self) -> KnownPoints:
        """Return the start itself: its ``dimension`` is that of points without offsets."""
        return self

    @property
    def dimension(self) -> int:
        """The number of coordinates of a point, without offsets."""
        return int(self.table.shape[1] - self.parts[-1].stop)

    def points(self, rows: Array) -> Array:
        """Return points and offsets.

        Args:
            rows: numbers of rows, shape (n, 1).
        """
        return self.table[rows[:, 0].astype(np.int64)]


class KnownStart:
    """A base for estimators beside public models whose rows have known points and offsets."""

    given: KnownPoints
    given_offsets: Array
    held_out_: Array

    def _space(
        self,
        row_map: Any,
        columns: int,
        public_features: Array | None,
        public_codes: Integers | None,
        labels: Columns,
    ) -> tuple[Any, Array | None]:
        assert public_features is not None
        self.held_out_ = self.given_offsets
        return self.given, self.given.points(public_features)


class OnStandIns(KnownStart, PublicStartClassifier):
    """The estimator on rows with known points and offsets, with noise from a seed."""

    planned: int
    alone: bool

    @property
    @override
    def _alone(self) -> bool:
        return self.alone

    @override
    def _steps(self) -> int:
        """Return the number of steps that the real records will get, which have unscaled noise."""
        stand_ins, self.records = self.records, self.planned
        try:
            return super()._steps()
        finally:
            self.records = stand_ins
