"""Public rows in the roles of public rows and of private records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from reticent.core.arrays import Array, Integers
from reticent.planning.tasks import Task
from reticent.systems.votes.estimator import KnownStart
from reticent.systems.votes.public_start import PublicStartClassifier
from reticent.training.public_pool import ClassColumn, PublicPool, public_folds, usual_pool
from reticent.training.public_space import PublicSpace
from reticent.training.public_start import KINDS, RowDetails, offset_steps

_WHITENING = 0.5
_DRAWS = 3

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
            known = KnownStart(
                np.hstack([points, offset_steps(offsets)]),
                (slice(0, self.task.classes),),
                offsets[train],
                self.task.n_private,
                alone,
            )
            model = PublicStartClassifier(
                epsilon=self.task.guarantee.epsilon,
                delta=self.task.guarantee.delta,
                classes=list(range(self.task.classes)),
                counting=self.task.counting,
                records=len(train),
            ).on_known_rows(known)
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
