"""Votes of neighbours that retire one by one, once their own budget is spent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reticent.core.arrays import Array
from reticent.core.guarantees import AddRemove
from reticent.neighbours import PointGrid
from reticent.neighbours.exhaustive import Exhaustive
from reticent.noise import SeededSampler
from reticent.planning.candidates import Requirements
from reticent.planning.tasks import Settings, StandIns, Task
from reticent.systems.private_knn.held_records import HeldRecords
from reticent.systems.private_knn.individual_session import IndividualNoise, IndividualSession
from reticent.systems.private_knn.radii import Ball, kernels_by_share
from reticent.systems.scores import Predictions

_SHARES = (0.05, 0.2)
_SPENT = 0.5
"""About the mean squared weight of a vote within the radius."""
_PARTS = (0.6, 1.2)
_MOST_VOTES = 2.0**20
_LEAD = 1.0


class IndividualKNN:
    """The records within a public radius vote, each as long as its own budget lasts."""

    name = "individual kNN"
    line = "the records near a query vote; each retires when its own budget is spent"
    protects = "every private record, by a budget of its own"
    requirements = Requirements(limited=True, replace=False, slow=True)

    def settings(self, task: Task) -> Sequence[Settings]:
        """Shares of the public rows within the radius, and parts of the queries near a record that
        its budget is for.
        """
        return [{"share": share, "part": part, "power": 1} for share in _SHARES for part in _PARTS]

    def evaluate(
        self,
        settings: Settings,
        tasks: Sequence[Task],
        stand_ins: StandIns,
        queries: Array,
        *,
        noise_scale: float,
        seeds: Sequence[int],
    ) -> list[list[Predictions]]:
        """See ``Candidate.evaluate``. Radii hold shares of public rows, so a record is near as many
        queries however many records there are; its budget is scaled with the number of queries.
        """
        grid = PointGrid.around(stand_ins.public_rows)
        near = Exhaustive(grid.points(stand_ins.public_rows))
        points, asked = grid.points(stand_ins.private_rows), grid.points(queries)
        kernels = kernels_by_share(
            asked,
            near,
            len(stand_ins.public_rows),
            share=settings["share"],
            power=settings["power"],
        )
        found = []
        for task in tasks:
            votes = _votes(settings, task)
            plan = IndividualNoise.of(
                epsilon=task.guarantee.epsilon,
                delta=task.guarantee.delta,
                classes=task.classes,
                votes=votes,
                looks=(1,),
                lead=_LEAD,
                adjacency=AddRemove(1),
            )
            size = min(len(asked), task.answers or 1)
            part = max(size / (task.answers or 1), 1.0 / votes)
            draws = []
            for seed in seeds:
                sampler = SeededSampler(seed)
                labels = np.empty(len(asked), dtype=np.int64)
                # Fewer answers than queries: each part of the queries is asked of whole budgets.
                for first in range(0, len(asked), size):
                    some = slice(first, first + size)
                    session = IndividualSession(plan, noise_scale=noise_scale, cap_scale=part)
                    held = HeldRecords(session.filter, dimension=grid.dimension, by_person=False)
                    held.insert(points, stand_ins.private_labels, None)
                    labels[some] = session.answer(held, asked[some], kernels[some], sampler=sampler)
                draws.append(Predictions(labels))
            found.append(draws)
        return found

    def estimator(self, settings: Settings, task: Task) -> Any:
        """Unfitted, at the task's total; its ``fit`` takes the public rows beside the records."""
        from reticent.systems.private_knn.individual import IndividualKNNClassifier

        return IndividualKNNClassifier(
            epsilon=task.guarantee.epsilon,
            delta=task.guarantee.delta,
            classes=task.label_list,
            votes=_votes(settings, task),
            ball=Ball(share=settings["share"], power=settings["power"]),
            lead=_LEAD,
        )


def _votes(settings: Settings, task: Task) -> float:
    """Whole votes of one record, for the number of queries that it will be near."""
    near = settings["share"] * (task.answers or 1)
    return float(min(max(1.0, settings["part"] * _SPENT * near), _MOST_VOTES))
