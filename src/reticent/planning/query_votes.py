"""Classifiers whose records vote on each query: linear votes and radius votes."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reticent.planning.candidates import Candidate, Requirements
from reticent.planning.tasks import Array, Predictions, Settings, StandIns, Task


@dataclass(frozen=True)
class QueryVotesCandidate:
    """An estimator with ``simulate``, whose answers are paid for one by one.

    Attributes:
        name, line, protects, requirements: see ``Candidate``.
        module: where the estimator is.
        estimator_name: its class.
    """

    name: str
    line: str
    module: str
    estimator_name: str
    requirements: Requirements = field(default_factory=lambda: Requirements(limited=True))
    protects: str = "every private record, by the noise of each answer"

    def settings(self, task: Task) -> Sequence[Settings]:
        """The estimator's own grid for these public numbers."""
        found: list[Settings] = self._class().settings_grid(
            n_private=task.n_private,
            n_public=task.n_public,
            features=task.features,
            classes=task.classes,
            epsilon=task.guarantee.epsilon,
        )
        return found

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
        """See ``Candidate.evaluate``."""
        found = []
        for task in tasks:
            fitted = self.estimator(settings, task).fit(
                stand_ins.private_rows, stand_ins.private_labels, public_X=stand_ins.public_rows
            )
            found.append(
                [
                    Predictions(
                        np.asarray(
                            fitted.simulate(
                                queries, seed=seed % 2**31, noise_scale=noise_scale
                            ).values,
                            dtype=np.int64,
                        )
                    )
                    for seed in seeds
                ]
            )
        return found

    def estimator(self, settings: Settings, task: Task) -> Any:
        """Unfitted, at the task's total and number of answers."""
        return self._class()(
            epsilon=task.guarantee.epsilon,
            delta=task.guarantee.delta,
            answers=task.answers,
            classes=list(range(task.classes)),
            counting=task.counting,
            **settings,
        )

    def _class(self) -> Any:
        return getattr(importlib.import_module(self.module), self.estimator_name)


def query_votes() -> list[Candidate]:
    """The package's classifiers whose records vote on each query."""
    return [
        QueryVotesCandidate(
            "linear vote",
            "each record votes for its label as far as it points the query's way",
            "reticent.systems.votes.linear_vote",
            "LinearVoteClassifier",
        ),
        QueryVotesCandidate(
            "radius votes",
            "the records within a public radius of the query vote",
            "reticent.systems.votes.radius_votes",
            "RadiusVotesClassifier",
        ),
    ]
