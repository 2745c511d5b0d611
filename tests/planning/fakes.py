"""Candidates whose utilities are known, and rows to try them on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reticent.core.arrays import Array
from reticent.core.guarantees import AddRemove, Guarantee
from reticent.planning.candidates import PublicUse, Requirements
from reticent.planning.noise_levels import sum_noise
from reticent.planning.tasks import Settings, StandIns, Task
from reticent.systems.scores import Predictions
from reticent.tables import Categorical, Numeric, TabularSchema

_RNG = np.random.default_rng(0)
_SCHEMA = TabularSchema(
    (Numeric("age", 0, 100), Numeric("dose", 0, 10), Categorical("ward", ("a", "b")))
)
INPUT_ROWS = np.empty((900, 3), dtype=object)
INPUT_ROWS[:, 0], INPUT_ROWS[:, 1] = _RNG.uniform(0, 100, 900), _RNG.uniform(0, 10, 900)
INPUT_ROWS[:, 2] = np.where(_RNG.random(900) < 0.5, "a", "b")
INPUT_LABELS = np.where(
    (INPUT_ROWS[:, 0].astype(float) > 50) ^ (_RNG.random(900) < 0.05), "ill", "well"
)
INPUT_GIVEN: dict[str, Any] = {"schema": _SCHEMA, "delta": 0.0, "random_state": 0}
"""A function of age but for one label in twenty, and what every plan for inputs is given."""


def task(**changed: Any) -> Task:
    """A task of 10,000 records."""
    settings = {
        "guarantee": Guarantee(1.0, 1e-5, AddRemove()),
        "n_private": 10_000,
        "n_public": 400,
        "classes": 2,
        "features": 2,
    }
    return Task(**{**settings, **changed})


def rows_and_labels(rows: int = 400, seed: int = 0) -> tuple[Array, Any]:
    """Rows whose first column is the label."""
    random = np.random.default_rng(seed)
    labels = np.arange(rows) % 2
    return np.column_stack([labels, random.normal(size=rows)]).astype(np.float64), labels


@dataclass
class Known:
    """Is right with a given probability, whatever the rows; the label is in the first column.

    Attributes:
        accuracies: by the number of stand-ins in use, as a function, or one number.
        seen: what ``evaluate`` was given: stand-ins, noise scale and seeds.
    """

    name: str
    accuracy: Any
    requirements: Requirements = field(default_factory=Requirements)
    settings_: Sequence[Settings] = ({},)
    line: str = "a coin"
    protects: str = "nothing"
    made: bool = True
    seen: list[tuple[StandIns, float, tuple[int, ...]]] = field(default_factory=list)

    def settings(self, task: Task) -> Sequence[Settings]:
        return self.settings_

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
        self.seen.append((stand_ins, noise_scale, tuple(seeds)))
        truth = queries[:, 0].astype(np.int64)
        found = []
        for task in tasks:
            chance = self.accuracy(stand_ins, task, settings) if callable(self.accuracy) else None
            share = self.accuracy if chance is None else chance
            draws = []
            for seed in seeds:
                own = np.random.default_rng([seed, len(self.name)])
                wrong = own.random(len(truth)) >= share
                draws.append(Predictions(np.where(wrong, 1 - truth, truth)))
            found.append(draws)
        return found

    def estimator(self, settings: Settings, task: Task) -> Any:
        from sklearn.dummy import DummyClassifier

        return DummyClassifier() if self.made else None


@dataclass
class NoisySign:
    """One noisy sum of +-1 votes of the records, whose sign answers every query at once.

    Its accuracy on rows of label 1 is known: Phi(margin n / noise).
    """

    name: str = "noisy sign"
    line: str = "the sign of a noisy sum"
    protects: str = "every record"
    requirements: Requirements = field(default_factory=Requirements)

    def settings(self, task: Task) -> Sequence[Settings]:
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
        votes = float((2 * stand_ins.private_labels - 1).sum())
        found = []
        for task in tasks:
            noise = sum_noise(task, releases=1, noise_scale=noise_scale)
            signs = [np.random.default_rng(seed).normal(votes, noise) > 0 for seed in seeds]
            found.append(
                [Predictions(np.full(len(queries), sign, dtype=np.int64)) for sign in signs]
            )
        return found

    def estimator(self, settings: Settings, task: Task) -> Any:
        return None


PUBLIC = Requirements(public=PublicUse.LABELS_ALONE, delta=False)
NOTHING = Requirements(public=PublicUse.NOTHING, delta=False)
LIMITED = Requirements(limited=True)
