"""Methods whose scores are known, and rows to try them on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from reticent.core.arrays import Array
from reticent.planning.methods import Answers, PublicUse, RecordMethod
from reticent.planning.parts import PublicParts
from reticent.planning.tasks import Task
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


def rows_and_labels(rows: int = 400, seed: int = 0) -> tuple[Array, Any]:
    """Rows whose first column is the label."""
    random = np.random.default_rng(seed)
    labels = np.arange(rows) % 2
    return np.column_stack([labels, random.normal(size=rows)]).astype(np.float64), labels


class Known(RecordMethod):
    """Is right with a given probability, whatever the rows; one draw of errors for each seed.

    Attributes:
        share: that probability, or a function of the task.
        asked: how often it was tried.
    """

    line = "a coin"
    delta = False

    def __init__(
        self,
        name: str,
        share: float | Callable[[Task], float],
        *,
        uses: PublicUse = PublicUse.LABELS_TOO,
        limited: bool = False,
        one_label: bool = False,
    ) -> None:
        self.name, self.share, self.uses, self.limited = name, share, uses, limited  # type: ignore[misc]
        self.one_label, self.asked = one_label, 0

    def answers(self, tasks: Sequence[Task], parts: PublicParts) -> Answers:
        self.asked += 1
        return [[self._draw(task, parts, seed) for seed in parts.seeds] for task in tasks]

    def _draw(self, task: Task, parts: PublicParts, seed: int) -> Predictions:
        share = self.share(task) if callable(self.share) else self.share
        random = np.random.default_rng([parts.seed, len(self.name), *map(ord, self.name)])
        labels = np.where(random.random(len(parts.codes)) >= share, 1 - parts.codes, parts.codes)
        if self.one_label:
            labels = np.zeros_like(labels)
        chances = np.full((len(labels), 2), 0.2)
        chances[np.arange(len(labels)), labels] = 0.8
        return Predictions(labels, None if self.limited else chances)

    def estimator(self, task: Task) -> Any:
        return (self.name, task.guarantee.epsilon)


def floor(share: float = 0.5) -> Known:
    """A constant that names one label."""
    return Known("constant", share, uses=PublicUse.NOTHING, one_label=True)
