"""The answer that is the same for every query: what a method has to beat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reticent.core.arrays import Array
from reticent.planning.candidates import PublicUse, Requirements
from reticent.planning.tasks import Settings, StandIns, Task
from reticent.systems.scores import Predictions


class Constant:
    """The shares of the labels among public rows, or the declared ones, whatever the query."""

    name = "constant"
    line = "the same shares of labels for every query"
    protects = "uses no private record"
    requirements = Requirements(public=PublicUse.NOTHING, delta=False)

    def settings(self, task: Task) -> Sequence[Settings]:
        """One, without any parameter."""
        return [{}]

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
        labels = stand_ins.public_labels
        if labels is None:
            labels = stand_ins.private_labels
        counts = np.bincount(labels, minlength=tasks[0].classes) + 1.0
        one = Predictions.of(np.tile(counts / counts.sum(), (len(queries), 1)))
        return [[one] * len(seeds) for _ in tasks]

    def estimator(self, settings: Settings, task: Task) -> Any:
        """A classifier to be fitted on labelled *public* rows."""
        from sklearn.dummy import DummyClassifier

        return DummyClassifier(strategy="prior")
