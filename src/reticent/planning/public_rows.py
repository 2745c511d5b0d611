"""Labelled public rows alone: no private record is used, and none has to be protected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reticent.core.arrays import Array, Integers
from reticent.planning.candidates import PublicUse, Requirements
from reticent.planning.tasks import Settings, StandIns, Task
from reticent.systems.scores import Predictions

_STRENGTHS = (0.01, 0.1, 1.0)
_TREES = 100
_MOST_FEATURES = 120
"""Trees are grown for tables; pictures and embeddings have more features than this."""
_MOST_LABELS = 3
"""Boosting grows a tree for each label and round; beyond this, averaged trees are as good here."""


class PublicRows:
    """An ordinary classifier, trained on the labelled public rows only.

    Logistic regression on standardised features, of several strengths of regularisation; and trees
    for tables, boosted where there are few labels and averaged where there are many.
    """

    name = "public rows alone"
    line = "an ordinary classifier of the labelled public rows; no private record is used"
    protects = "uses no private record"
    requirements = Requirements(public=PublicUse.LABELS_ALONE, delta=False)

    def settings(self, task: Task) -> Sequence[Settings]:
        """Logistic regressions by strength, and trees."""
        linear = [{"model": "logistic", "C": strength} for strength in _STRENGTHS]
        if task.features > _MOST_FEATURES:
            return linear
        kind = "boosted trees" if task.classes <= _MOST_LABELS else "averaged trees"
        return [*linear, {"model": kind, "trees": _TREES}]

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
        """See ``Candidate.evaluate``; no noise, so every task and seed has the same answer."""
        assert stand_ins.public_labels is not None
        one = self._predicted(settings, tasks[0], stand_ins, stand_ins.public_labels, queries)
        return [[one] * len(seeds) for _ in tasks]

    def estimator(self, settings: Settings, task: Task) -> Any:
        """A classifier to be fitted on the labelled *public* rows."""
        from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        if settings["model"] == "boosted trees":
            return HistGradientBoostingClassifier(
                max_iter=settings["trees"],
                learning_rate=0.07,
                max_leaf_nodes=12,
                early_stopping=False,
                random_state=0,
            )
        if settings["model"] == "averaged trees":
            return ExtraTreesClassifier(settings["trees"], min_samples_leaf=2, random_state=0)
        return make_pipeline(
            StandardScaler(), LogisticRegression(C=settings["C"], max_iter=200, tol=1e-3)
        )

    def _predicted(
        self, settings: Settings, task: Task, stand_ins: StandIns, labels: Integers, queries: Array
    ) -> Predictions:
        present = np.unique(labels)
        found = np.zeros((len(queries), task.classes))
        if len(present) == 1:
            found[:, present[0]] = 1.0
            return Predictions.of(found)
        fitted = self.estimator(settings, task).fit(stand_ins.public_rows, labels)
        found[:, present] = fitted.predict_proba(queries)
        return Predictions.of(found)
