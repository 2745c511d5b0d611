"""Classifiers whose records vote on each query."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from reticent.core.arrays import Array
from reticent.core.settings import plain
from reticent.planning.candidates import Candidate, Requirements
from reticent.planning.released_models import in_parts
from reticent.planning.tasks import Settings, StandIns, Task
from reticent.release.fits import not_counted
from reticent.systems.scores import Predictions


@dataclass(frozen=True)
class QueryVotesCandidate:
    """An estimator with ``simulate``, whose answers are paid for one by one.

    Attributes:
        name, line, protects, requirements: see ``Candidate``.
        module: where the estimator is.
        estimator_name: its class.
        grid: the settings that are tried, from the estimator's own.
    """

    name: str
    line: str
    module: str
    estimator_name: str
    grid: Callable[[Sequence[Settings]], Sequence[Settings]] = list
    requirements: Requirements = field(default_factory=lambda: Requirements(limited=True))
    protects: str = "every private record, by the noise of each answer"

    def settings(self, task: Task) -> Sequence[Settings]:
        """The estimator's own grid for these public numbers."""
        found = self._class().settings_grid(
            n_private=task.n_private,
            n_public=task.n_public,
            features=task.features,
            classes=task.classes,
            epsilon=task.guarantee.epsilon,
        )
        return self.grid([plain(one) for one in found])

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
        with not_counted("a plan: its rows are public, and nothing that is fitted leaves"):
            fitted = self.estimator(settings, tasks[0]).fit(
                stand_ins.private_rows, stand_ins.private_labels, public_X=stand_ins.public_rows
            )
        labels = fitted.simulate_totals(
            queries,
            totals=[
                (task.guarantee.epsilon, task.guarantee.delta, task.answers or 1) for task in tasks
            ],
            seeds=seeds,
            noise_scale=noise_scale,
        )
        return [[Predictions(draw) for draw in draws] for draws in labels]

    def estimator(self, settings: Settings, task: Task) -> Any:
        """Unfitted, at the task's total and number of answers."""
        return self._class()(
            epsilon=task.guarantee.epsilon,
            delta=task.guarantee.delta,
            answers=task.answers,
            classes=task.label_list,
            counting=task.counting,
            **in_parts(settings),
        )

    def _class(self) -> Any:
        return getattr(importlib.import_module(self.module), self.estimator_name)


def _linear(settings: Sequence[Settings]) -> Sequence[Settings]:
    return [one for one in settings if one["clip_quantile"] == 0.6]


def query_votes() -> list[Candidate]:
    """The package's classifiers whose records vote on each query."""
    return [
        QueryVotesCandidate(
            "linear vote",
            "each record votes for its label as far as it points the query's way",
            "reticent.systems.votes.linear_vote",
            "LinearVoteClassifier",
            grid=_linear,
        ),
    ]
