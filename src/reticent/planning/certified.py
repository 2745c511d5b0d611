"""Certified prediction: a model without noise, whose labels are randomised by their stability."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from reticent.core.arrays import Array, Integers
from reticent.planning.candidates import Requirements
from reticent.planning.tasks import Settings, StandIns, Task
from reticent.release.fits import not_counted
from reticent.systems.certified.choosing import calibrated_choice
from reticent.systems.certified.query import MechanismChoice
from reticent.systems.scores import Predictions

_SHARES = (0.005, 0.03)
"""Certified distances as shares of the records: what a stable label survives."""
_REGULARIZATIONS = (1.0, 10.0, 100.0)
_LEAST_REGULARIZATION = 1.0 / 16.0
_NORM_SHARE = 0.6
"""Norm bound over the norm of a corner of the ranges; a row uniform within them has 0.58."""
_MOST_LEVELS = 2.0**40
_LEAST_EPSILON = 1e-6
"""Of a response that is tried; below it, levels without number would be tabulated for a guess."""
_PLACEHOLDER = MechanismChoice(name="stability", epsilon=1.0, delta=0.0)
_LARGEST_EPSILON = 100.0
"""Gaussian noise is calibrated up to this total; beyond it, responses answer."""


class Certified:
    """Labels of logistic or softmax regression with certified intervals around its weights.

    Randomised responses or Gaussian noise on the signed distance, whichever the total and the
    number of answers ask for.
    """

    name = "certified prediction"
    line = "a model trained without noise, labels randomised by how many records they survive"
    protects = "every private record, by the randomness of each answer"
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
        made = self._made(scaled, tasks[0], _ends(stand_ins), _PLACEHOLDER)
        with not_counted("a plan: its rows are public, and nothing that is fitted leaves"):
            fitted = made.fit(stand_ins.private_rows, stand_ins.private_labels)
        labels, distances = fitted[-1].stable_distances(fitted[:-1].transform(queries))
        return _answers(tasks, labels, np.floor(distances / noise_scale), seeds)

    def estimator(self, settings: Settings, task: Task) -> Any:
        """A pipeline: public ranges, then the classifier at the cost of one answer."""
        return self._made(settings, task, (np.array(task.lower), np.array(task.upper)), _each(task))

    def _made(
        self, settings: Settings, task: Task, ends: tuple[Array, Array], each: MechanismChoice
    ) -> Any:
        from reticent.systems.certified.classifier import CertifiedClassifier
        from reticent.systems.certified.interval_system import ClippedDescent

        training = dict(settings)
        return _ranged(
            ends,
            CertifiedClassifier(
                epsilon=each.epsilon,
                delta=each.delta,
                mechanism=each.name,
                classes=task.label_list,
                counting=task.counting,  # type: ignore[arg-type]
                k_max=training.pop("k_max"),
                training=ClippedDescent(**training),
            ),
        )


class ConvexCertified:
    """Labels of a regularised logistic regression, certified by the curvature at its minimum."""

    name = "convex certified prediction"
    line = "logistic regression without noise, labels randomised by its certified stability"
    protects = "every private record, by the randomness of each answer"
    requirements = Requirements(limited=True, delta=False, slow=True, labels=2)

    def settings(self, task: Task) -> Sequence[Settings]:
        """Strengths of regularisation: distances grow with it, accuracy falls."""
        return [{"regularization": strength} for strength in _REGULARIZATIONS]

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
        """See ``Candidate.evaluate``. Regularisation stays the same share of the loss, which makes
        the model that of more records; distances grow with their number.
        """
        strength = max(_LEAST_REGULARIZATION, settings["regularization"] * noise_scale)
        made = self._made({"regularization": strength}, tasks[0], _ends(stand_ins), _PLACEHOLDER)
        with (
            not_counted("a plan: its rows are public, and nothing that is fitted leaves"),
            warnings.catch_warnings(),
        ):
            # Stand-ins are public, and that some are cut is what a bound on the norm is for.
            warnings.filterwarnings(
                "ignore", message=".*longer than norm_bound", category=UserWarning
            )
            fitted = made.fit(stand_ins.private_rows, stand_ins.private_labels)
        [model] = fitted[-1].members_
        labels, reserves = model.reserves(fitted[:-1].transform(queries))
        # Reserves are scaled before they are rounded: among few records most would round to none.
        worth = model.settings.worth
        levels = np.maximum(np.ceil(reserves / (noise_scale * worth)) - 1.0, 0.0)
        return _answers(tasks, labels, levels, seeds)

    def estimator(self, settings: Settings, task: Task) -> Any:
        """A pipeline: public ranges, then the classifier at the cost of one answer."""
        return self._made(settings, task, (np.array(task.lower), np.array(task.upper)), _each(task))

    def _made(
        self, settings: Settings, task: Task, ends: tuple[Array, Array], each: MechanismChoice
    ) -> Any:
        from reticent.systems.certified.convex_classifier import ConvexCertifiedClassifier

        return _ranged(
            ends,
            ConvexCertifiedClassifier(
                epsilon=each.epsilon,
                delta=each.delta,
                mechanism=each.name,
                classes=task.label_list,
                norm_bound=float(np.sqrt(task.features)) * _NORM_SHARE,
                counting=task.counting,  # type: ignore[arg-type]
                **settings,
            ),
        )


def _ends(stand_ins: StandIns) -> tuple[Array, Array]:
    return stand_ins.public_rows.min(axis=0), stand_ins.public_rows.max(axis=0)


def _ranged(ends: tuple[Array, Array], classifier: Any) -> Any:
    from sklearn.pipeline import make_pipeline

    from reticent.systems.public_ranges import PublicRanges

    lower, upper = ends
    upper = np.where(upper > lower, upper, lower + 1.0)
    return make_pipeline(PublicRanges((lower.tolist(), upper.tolist())), classifier)


def _answers(
    tasks: Sequence[Task], labels: Integers, distances: Array, seeds: Sequence[int]
) -> list[list[Predictions]]:
    levels = np.minimum(distances, _MOST_LEVELS).astype(np.int64)
    return [
        [Predictions(_released(task, labels, levels, seed)) for seed in seeds] for task in tasks
    ]


def _each(task: Task) -> MechanismChoice:
    """The mechanism, and the cost of one answer, that the total leaves."""
    guarantee = task.guarantee
    return _choice(task.classes, guarantee.epsilon, guarantee.delta, task.answers or 1)


@lru_cache(maxsize=256)
def _choice(classes: int, epsilon: float, delta: float, answers: int) -> MechanismChoice:
    return calibrated_choice(
        "auto" if epsilon <= _LARGEST_EPSILON else "stability",
        classes=classes,
        epsilon=epsilon,
        delta=delta,
        answers=answers,
    )


def _released(task: Task, labels: Integers, levels: Integers, seed: int) -> Integers:
    each = _each(task)
    if each.name == "stability":
        each = replace(each, epsilon=max(_LEAST_EPSILON, each.epsilon))
    mechanism: Any = each.mechanism(task.classes, task.guarantee.adjacency)
    capped = np.minimum(levels, mechanism.max_level)
    right = (
        mechanism.right_probabilities[capped]
        if each.name == "stability"
        else mechanism.right_probabilities(capped)
    )
    random = np.random.default_rng(seed)
    wrong = random.random(len(labels)) >= right
    shift = 1 + random.integers(task.classes - 1, size=len(labels))
    return np.asarray(np.where(wrong, (labels + shift) % task.classes, labels))
