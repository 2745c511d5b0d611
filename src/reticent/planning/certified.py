"""Certified prediction: a model without noise, whose labels are randomised by their stability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reticent.accounting.calibration import epsilon_per_answer
from reticent.planning.candidates import Requirements
from reticent.planning.tasks import Array, Integers, Predictions, Settings, StandIns, Task

_SHARES = (0.005, 0.03)
"""Certified distances as shares of the records: what a stable label survives."""
_LEAST_EPSILON = 1e-6


class Certified:
    """Labels of logistic or softmax regression with certified intervals around its weights."""

    name = "certified prediction"
    line = "a model trained without noise, labels randomised by how many records they survive"
    protects = "every private record, by the randomised response of each answer"
    requirements = Requirements(limited=True, delta=False, slow=True)

    def settings(self, task: Task) -> Sequence[Settings]:
        """Schedules, and largest distances that are certified."""
        return [
            {
                "k_max": max(20, round(share * task.n_private)),
                "epochs": 4,
                "learning_rate": rate,
                "rate_decay": 0.6,
                "clip": 0.06,
            }
            for share, rate in ((_SHARES[0], 1.0), (_SHARES[1], 1.0))
        ]

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
        """See ``Candidate.evaluate``. A label that survives a share of the stand-ins survives that
        share of the records: distances are divided by ``noise_scale``.
        """
        scaled = {**settings, "k_max": max(5, round(settings["k_max"] * noise_scale))}
        fitted = self._made(scaled, tasks[0], epsilon=1.0, stand_ins=stand_ins).fit(
            stand_ins.private_rows, stand_ins.private_labels
        )
        labels, distances = fitted[-1].stable_distances(fitted[:-1].transform(queries))
        levels = np.floor(distances / noise_scale).astype(np.int64)
        return [
            [Predictions(_released(task, labels, levels, seed)) for seed in seeds] for task in tasks
        ]

    def estimator(self, settings: Settings, task: Task) -> Any:
        """A pipeline: public ranges, then the classifier at the epsilon of one answer."""
        return self._made(settings, task, epsilon=_each(task), stand_ins=None)

    def _made(
        self, settings: Settings, task: Task, *, epsilon: float, stand_ins: StandIns | None
    ) -> Any:
        from sklearn.pipeline import make_pipeline

        from reticent.systems.certified.classifier import CertifiedClassifier
        from reticent.systems.public_ranges import PublicRanges

        if stand_ins is None:
            ends = np.array(task.lower), np.array(task.upper)
        else:
            ends = stand_ins.public_rows.min(axis=0), stand_ins.public_rows.max(axis=0)
        lower, upper = ends
        upper = np.where(upper > lower, upper, lower + 1.0)
        classifier = CertifiedClassifier(
            epsilon=epsilon,
            classes=list(range(task.classes)),
            counting=task.counting,  # type: ignore[arg-type]
            random_state=0,
            **settings,
        )
        return make_pipeline(PublicRanges((lower.tolist(), upper.tolist())), classifier)


def _each(task: Task) -> float:
    return max(
        _LEAST_EPSILON,
        epsilon_per_answer(
            epsilon=task.guarantee.epsilon, delta=task.guarantee.delta, answers=task.answers or 1
        ),
    )


def _released(task: Task, labels: Integers, levels: Integers, seed: int) -> Integers:
    from reticent.mechanisms.stability_response import StabilityResponse

    response = StabilityResponse(
        classes=task.classes, epsilon=_each(task), adjacency=task.guarantee.adjacency
    )
    right = response.right_probabilities[np.minimum(levels, response.max_level)]
    random = np.random.default_rng(seed)
    wrong = random.random(len(labels)) >= right
    shift = 1 + random.integers(task.classes - 1, size=len(labels))
    return np.asarray(np.where(wrong, (labels + shift) % task.classes, labels))
