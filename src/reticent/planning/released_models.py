"""Classifiers that are themselves the release: cells, moments, noisy gradient descent."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from reticent.core.arrays import Array
from reticent.core.guarantees import Guarantee
from reticent.core.settings import plain
from reticent.planning.candidates import Candidate, PublicUse, Requirements
from reticent.planning.tasks import Settings, StandIns, Task
from reticent.systems.scores import Predictions

_MODULE = "reticent.systems.votes"
_SIZES = 2
"""Numbers of components of a descent that are tried: more take longer, and seldom win."""
_SUREST = 0.9
"""Share of the public rows whose released labels teach a student (papers/choose/headline.py)."""


@dataclass(frozen=True)
class ReleasedModelCandidate:
    """An estimator with ``simulate_fit`` and ``predict_proba``, such as ``CellsClassifier``.

    Attributes:
        name, line, protects, requirements: see ``Candidate``.
        module: where the estimator is.
        estimator_name: its class.
        grid: the settings that are tried, from the estimator's own.
        counts: whether the estimator divides by a public number of records.
    """

    name: str
    line: str
    module: str
    estimator_name: str
    requirements: Requirements = field(default_factory=Requirements)
    grid: Callable[[Sequence[Settings]], Sequence[Settings]] = list
    counts: bool = False
    protects: str = "every private record, by the noise of the released model"

    def settings(self, task: Task) -> Sequence[Settings]:
        """The estimator's own grid for these public numbers, as this candidate changes it."""
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
        """See ``Candidate.evaluate``; a model answers any number of queries, so tasks that differ
        in answers alone share it.
        """
        guarantees = list(dict.fromkeys(task.guarantee for task in tasks))
        fitted = self._made(settings, tasks[0], records=len(stand_ins.private_rows)).simulate_fits(
            stand_ins.private_rows,
            stand_ins.private_labels,
            totals=[(guarantee.epsilon, guarantee.delta) for guarantee in guarantees],
            seeds=seeds,
            noise_scale=noise_scale,
            public_X=stand_ins.public_rows,
            public_y=stand_ins.public_labels,
        )
        found: dict[Guarantee, list[Predictions]] = {guarantee: [] for guarantee in guarantees}
        for guarantee in guarantees:
            for _ in seeds:
                found[guarantee].append(Predictions.of(next(fitted).predict_proba(queries)))
        return [found[task.guarantee] for task in tasks]

    def estimator(self, settings: Settings, task: Task) -> Any:
        """Unfitted, at the task's total; its ``fit`` takes the public rows beside the records."""
        return self._made(settings, task, records=task.n_private)

    def _made(self, settings: Settings, task: Task, *, records: int) -> Any:
        from reticent.systems.votes.noisy_counts import counted

        given = in_parts(settings)
        return self._class()(
            epsilon=task.guarantee.epsilon,
            delta=task.guarantee.delta,
            classes=task.label_list,
            counting=task.counting,
            **(counted(given, records) if self.counts else given),
        )

    def _class(self) -> Any:
        return getattr(importlib.import_module(self.module), self.estimator_name)


def in_parts(settings: Settings) -> dict[str, Any]:
    """Return settings as an estimator of votes takes them: those of features in one part, and the
    rate of a descent in another.
    """
    from reticent.systems.votes.features import Features
    from reticent.systems.votes.noisy_counts import Pace

    rest = dict(settings)
    shaping = {name: rest.pop(name) for name in ("components", "whitening") if name in rest}
    if "learning_rate" in rest:
        rest["pace"] = Pace(learning_rate=rest.pop("learning_rate"))
    return {**rest, "features": Features(**shaping)}


def _descents(settings: Sequence[Settings]) -> Sequence[Settings]:
    """Few and many steps; in between, the best is within noise of one of these."""
    sizes = sorted({one["components"] for one in settings})[:_SIZES]
    return [one for one in settings if one["steps"] in (10, 40) and one["components"] in sizes]


def _taught(settings: Sequence[Settings]) -> Sequence[Settings]:
    """Descents whose surest labels of public rows teach a linear classifier."""
    sizes = sorted({one["components"] for one in settings})[:_SIZES]
    return [
        {**one, "student_share": _SUREST}
        for one in settings
        if one["steps"] in (10, 40) and one["components"] == sizes[-1]
    ]


def _cells(settings: Sequence[Settings]) -> Sequence[Settings]:
    """The two finest single resolutions, and several at once."""
    single = sorted({one["cells"] for one in settings if isinstance(one["cells"], int)})[-2:]
    return [one for one in settings if not isinstance(one["cells"], int) or one["cells"] in single]


def _warm(settings: Sequence[Settings]) -> Sequence[Settings]:
    """Fewer steps, which begin close to their aim; and for each number of components once."""
    sizes = sorted({one["components"] for one in settings})[:_SIZES]
    return [
        {
            "components": size,
            "whitening": 0.5,
            "warm_start": True,
            "steps": steps,
            "learning_rate": rate,
        }
        for size in sizes
        for steps, rate in ((5, 10.0), (20, 20.0))
    ]


def released_models() -> list[Candidate]:
    """The package's classifiers that are released as a whole."""
    return [
        ReleasedModelCandidate(
            "warm start",
            "noisy gradient descent that starts from the labelled public rows",
            f"{_MODULE}.noisy_gradient",
            "NoisyGradientClassifier",
            requirements=Requirements(public=PublicUse.LABELS_TOO),
            grid=_warm,
            counts=True,
        ),
        ReleasedModelCandidate(
            "cells",
            "one noisy histogram of labels over public cells, for any number of answers",
            f"{_MODULE}.cells",
            "CellsClassifier",
            grid=_cells,
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
            grid=_descents,
            counts=True,
        ),
        ReleasedModelCandidate(
            "student",
            "a linear classifier of the labels that noisy gradient descent is surest of",
            f"{_MODULE}.noisy_gradient",
            "NoisyGradientClassifier",
            requirements=Requirements(slow=True),
            grid=_taught,
            counts=True,
        ),
    ]
