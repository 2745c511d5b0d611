"""Private-kNN and PATE: labels by the noisy votes of neighbours, or of teachers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from reticent.accounting.private_knn import PrivateKnnSteps
from reticent.accounting.private_knn_calibration import least_gaussian_noise
from reticent.core.arrays import Array, Integers
from reticent.core.errors import CalibrationFailed
from reticent.core.norms import Norm
from reticent.planning.candidates import Requirements
from reticent.planning.tasks import Settings, StandIns, Task
from reticent.systems.scores import Predictions

_SAMPLED = 0.15
_WORTHLESS = 1e9
"""Noise in votes where none that is computed meets the total: the answer is a guess."""


_ANSWERS = (1, 10, 100, 1000)
_EPSILONS = (0.1, 1.0, 10.0)
_EXACT = (
    (0.906, 0.925, 0.980),
    (0.815, 0.821, 0.830),
    (0.807, 0.807, 0.832),
    (0.801, 0.801, 0.810),
)
"""Calibrated noise over that of Gaussian steps, by answers and by epsilon. The ratio hardly depends
on how much is sampled; tests/planning/test_private_knn.py compares with the calibration itself,
which takes up to 15 seconds a total where this takes a tenth of one.
"""


@lru_cache(maxsize=1024)
def votes_noise(
    *, epsilon: float, delta: float, answers: int, sampling_probability: float
) -> float:
    """About the standard deviation of the noise on each count, in votes, for ``answers`` labels.

    For trials only: it is within 4 % of what ``calibrate_private_knn`` proves, and proves nothing.
    Without screening it does not depend on how many records vote.

    Example:
        >>> noise = votes_noise(epsilon=2.0, delta=1e-5, answers=20, sampling_probability=0.5)
        >>> 4 < noise < 6
        True
    """
    steps = PrivateKnnSteps(
        queries=answers,
        answers=answers,
        neighbours=1,
        sampling_probability=sampling_probability,
        sigma_votes=1.0,
        threshold=None,
        sigma_screening=None,
    )
    try:
        gaussian = least_gaussian_noise(
            lambda sigma: replace(steps, sigma_votes=sigma), epsilon, delta
        )
    except CalibrationFailed:
        return _WORTHLESS
    by_epsilon = [np.interp(math.log(epsilon), np.log(_EPSILONS), row) for row in _EXACT]
    return gaussian * float(np.interp(math.log(answers), np.log(_ANSWERS), by_epsilon))


class PrivateKNN:
    """The nearest of a fresh Poisson sample of the records vote."""

    name = "private kNN"
    line = "the nearest records of a fresh sample vote on each query"
    protects = "every private record, by the noise of each answer"
    requirements = Requirements(limited=True, replace=False, slow=True)

    def settings(self, task: Task) -> Sequence[Settings]:
        """Numbers of neighbours: shares of the sampled records."""
        sampled = _SAMPLED * task.n_private
        return [
            {"neighbours": max(10, round(share * sampled)), "sampling_probability": _SAMPLED}
            for share in (0.03, 0.12)
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
        """See ``Candidate.evaluate``. The counts are those that a sample has on average: what
        sampling adds to them is small beside the noise.
        """
        share = settings["sampling_probability"]
        nearest = settings["neighbours"] * noise_scale / share
        counts = share * _nearest_counts(stand_ins, queries, nearest, tasks[0].classes)
        return [
            _noisy_labels(
                counts,
                noise_scale
                * votes_noise(
                    epsilon=task.guarantee.epsilon,
                    delta=task.guarantee.delta,
                    answers=task.answers or 1,
                    sampling_probability=share,
                ),
                seeds,
            )
            for task in tasks
        ]

    def estimator(self, settings: Settings, task: Task) -> Any:
        """Unfitted, at the task's total; features in their public ranges."""
        from reticent.systems.private_knn.classifier import PrivateKNNClassifier
        from reticent.systems.private_knn.plan import Neighbours

        return PrivateKNNClassifier(
            epsilon=task.guarantee.epsilon,
            delta=task.guarantee.delta,
            queries=task.answers or 1,
            classes=task.label_list,
            feature_range=(list(task.lower), list(task.upper)),
            neighbours=Neighbours(
                number=settings["neighbours"],
                sampling_probability=settings["sampling_probability"],
            ),
        )


class Pate:
    """Linear teachers on parts of the records vote; this package has it to compare with."""

    name = "PATE"
    line = "teachers, each trained on its own part of the records, vote on each query"
    protects = "every private record, by the noise of each answer"
    requirements = Requirements(limited=True, replace=False, slow=True)

    def settings(self, task: Task) -> Sequence[Settings]:
        """Records of one teacher, and its ridge."""
        return [
            {"records": records, "ridge": 3.0}
            for records in (max(20, 5 * task.classes), max(100, 20 * task.classes))
            if task.n_private >= 10 * records
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
        """See ``Candidate.evaluate``; teachers have as many records as they will have, and are
        fewer.
        """
        from reticent.training.pate import PateTeachers

        teachers = max(2, round(len(stand_ins.private_rows) / settings["records"]))
        counts = PateTeachers.of(
            stand_ins.private_rows,
            stand_ins.private_labels,
            None,
            teachers=teachers,
            classes=tasks[0].classes,
            public_features=stand_ins.public_rows,
            ridge=settings["ridge"],
        ).votes(queries)
        return [
            _noisy_labels(
                counts.astype(np.float64),
                noise_scale
                * votes_noise(
                    epsilon=task.guarantee.epsilon,
                    delta=task.guarantee.delta,
                    answers=task.answers or 1,
                    sampling_probability=1.0,
                ),
                seeds,
            )
            for task in tasks
        ]

    def estimator(self, settings: Settings, task: Task) -> Any:
        """None: the teachers of this package are a baseline of experiments."""
        return None


def _nearest_counts(stand_ins: StandIns, queries: Array, nearest: float, classes: int) -> Array:
    """Labels among the ``nearest`` stand-ins of each query, shape (q, classes); the last one
    counts as a fraction.
    """
    rows = stand_ins.private_rows
    order = stand_ins.once(
        ("nearest", queries.shape, float(queries.sum())), lambda: _order(stand_ins, queries)
    )
    weights = np.clip(nearest - np.arange(len(rows)), 0.0, 1.0)
    most = min(len(rows), math.ceil(nearest))
    found = np.zeros((len(queries), classes))
    labels = stand_ins.private_labels[order[:, :most]]
    for label in range(classes):
        found[:, label] = (labels == label) @ weights[:most]
    return found


def _order(stand_ins: StandIns, queries: Array) -> Integers:
    rows = stand_ins.private_rows
    lower, upper = stand_ins.public_rows.min(axis=0), stand_ins.public_rows.max(axis=0)
    width = np.maximum(upper - lower, 1e-12)
    points, asked = (rows - lower) / width, (queries - lower) / width
    return np.asarray(Norm.L2.between(asked, points).argsort(axis=1, kind="stable"))


def _noisy_labels(counts: Array, noise: float, seeds: Sequence[int]) -> list[Predictions]:
    return [
        Predictions(
            (counts + np.random.default_rng(seed).normal(0.0, noise, counts.shape)).argmax(axis=1)
        )
        for seed in seeds
    ]
