"""Classifiers that are themselves the release: cells, moments, noisy gradient descent."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from reticent.core.guarantees import Guarantee
from reticent.planning.candidates import Candidate, PublicUse, Requirements
from reticent.planning.tasks import Array, Predictions, Settings, StandIns, Task

_MODULE = "reticent.systems.votes"


@dataclass(frozen=True)
class ReleasedModelCandidate:
    """An estimator with ``simulate_fit`` and ``predict_proba``, such as ``CellsClassifier``.

    Attributes:
        name, line, protects, requirements: see ``Candidate``.
        module: where the estimator is.
        estimator_name: its class.
        takes: which of the estimator's own settings are tried under this name.
        counts: whether the estimator has a parameter ``records``, a public number of records.
    """

    name: str
    line: str
    module: str
    estimator_name: str
    requirements: Requirements = field(default_factory=Requirements)
    takes: Callable[[Settings], bool] = lambda settings: True
    counts: bool = False
    protects: str = "every private record, by the noise of the released model"

    def settings(self, task: Task) -> Sequence[Settings]:
        """The estimator's own grid for these public numbers."""
        found = self._class().settings_grid(
            n_private=task.n_private,
            n_public=task.n_public,
            features=task.features,
            classes=task.classes,
            epsilon=task.guarantee.epsilon,
        )
        return [settings for settings in found if self.takes(settings)]

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
        """See ``Candidate.evaluate``; a model answers any number of queries, so tasks that differ
        in answers alone share it.
        """
        found: dict[Guarantee, list[Predictions]] = {}
        for task in tasks:
            if task.guarantee not in found:
                found[task.guarantee] = [
                    self._predicted(settings, task, stand_ins, queries, noise_scale, seed)
                    for seed in seeds
                ]
        return [found[task.guarantee] for task in tasks]

    def estimator(self, settings: Settings, task: Task) -> Any:
        """Unfitted, at the task's total; its ``fit`` takes the public rows beside the records."""
        return self._made(settings, task, records=task.n_private)

    def _made(self, settings: Settings, task: Task, *, records: int) -> Any:
        counted = {"records": records} if self.counts else {}
        return self._class()(
            epsilon=task.guarantee.epsilon,
            delta=task.guarantee.delta,
            classes=list(range(task.classes)),
            counting=task.counting,
            **{**counted, **settings},
        )

    def _predicted(
        self,
        settings: Settings,
        task: Task,
        stand_ins: StandIns,
        queries: Array,
        noise_scale: float,
        seed: int,
    ) -> Predictions:
        fitted = self._made(settings, task, records=len(stand_ins.private_rows)).simulate_fit(
            stand_ins.private_rows,
            stand_ins.private_labels,
            seed=seed % 2**31,
            noise_scale=noise_scale,
            public_X=stand_ins.public_rows,
            public_y=stand_ins.public_labels,
        )
        return Predictions.of(fitted.predict_proba(queries))

    def _class(self) -> Any:
        return getattr(importlib.import_module(self.module), self.estimator_name)


def _warm(settings: Settings) -> bool:
    return bool(settings.get("warm_start"))


def _cold(settings: Settings) -> bool:
    return not settings.get("warm_start")


def released_models() -> list[Candidate]:
    """The package's classifiers that are released as a whole."""
    return [
        ReleasedModelCandidate(
            "warm start",
            "noisy gradient descent that starts from the labelled public rows",
            f"{_MODULE}.noisy_gradient",
            "NoisyGradientClassifier",
            requirements=Requirements(public=PublicUse.LABELS_TOO),
            takes=_warm,
            counts=True,
        ),
        ReleasedModelCandidate(
            "cells",
            "one noisy histogram of labels over public cells, for any number of answers",
            f"{_MODULE}.cells",
            "CellsClassifier",
        ),
        ReleasedModelCandidate(
            "moment",
            "a noisy sum of features by label, and second moments of public rows",
            f"{_MODULE}.moment",
            "MomentClassifier",
        ),
        ReleasedModelCandidate(
            "noisy gradient descent",
            "softmax regression by full-batch gradient descent on noisy sums",
            f"{_MODULE}.noisy_gradient",
            "NoisyGradientClassifier",
            takes=_cold,
            counts=True,
        ),
    ]
