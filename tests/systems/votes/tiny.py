"""Tiny data sets, and sums caught before their noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from reticent.mechanisms import NoisySums
from reticent.systems.votes.estimator import Given

PUBLIC_X = np.array(
    [[-3.0, 0.5], [-1.0, 1.0], [0.0, -1.0], [1.0, 0.2], [2.0, -0.7], [4.0, 2.0], [0.5, 3.0]]
)
PUBLIC_Y = np.array([0, 0, 1, 1, 2, 2, 0])
RECORDS = [
    ((-3.0, 0.0), 0),
    ((0.2, 0.1), 1),
    ((0.2, 0.1), 2),
    ((1e9, -1e9), 2),
    ((2.0, 2.0), 0),
]
"""Points and labels, one of them far outside of whatever is public."""

COMMON: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "classes": (0, 1, 2)}

TWO_LABELS: dict[str, Any] = {**COMMON, "classes": [(0, 1, 2), (5, 7)]}
TARGETS: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "target_range": (0.5, 1.5)}
TWO_TARGETS: dict[str, Any] = {**TARGETS, "target_range": (0.5, (1.5, 6.5))}
"""Arguments with which labels are two columns, or targets, most of them beyond their range."""

OTHERS = [((1.0, -2.0), 1)]
"""In every data set, so that none is empty."""


def as_asked(model: Any, labels: np.ndarray) -> np.ndarray:
    """Labels as ``model`` takes them: one column, or two."""
    given = model.get_params()
    several = given.get("classes") == TWO_LABELS["classes"]
    several |= given.get("target_range") == TWO_TARGETS["target_range"]
    return np.column_stack([labels, np.where(labels == 0, 5, 7)]) if several else labels


class Told:
    """Stands for a ``SumSession``: keeps the totals, and "releases" the same numbers to everybody,
    so that what follows can differ only where it depends on records in another way.
    """

    sampler = None
    noise_scale = 1.0

    def __init__(self, mechanism: NoisySums) -> None:
        self.mechanism, self.sigmas = mechanism, mechanism.sigmas
        self.totals: list[list[np.ndarray]] = []

    def release(self, totals: Any) -> tuple[np.ndarray, ...]:
        arrays = [np.array(total, dtype=np.float64) for total in totals]
        self.totals.append(arrays)
        rng = np.random.default_rng(len(self.totals))
        return tuple(
            np.rint(rng.normal(size=array.shape) * sigma).astype(np.int64)
            for array, sigma in zip(arrays, self.sigmas, strict=True)
        )


def told(model: Any, X: Any, y: Any, keys: Any = None, **public: Any) -> Told:
    """Let ``model`` learn from numbers that have nothing to do with the records."""
    voters, rows = model._ready(Given(X, y, **public, persons=keys))
    session = Told(model._mechanism())
    model.learn(voters, rows, session)
    model.student_ = model.costs_ = None
    return session


def caught(model: Any, records: list[Any], keys: list[Any] | None, **public: Any) -> Told:
    """The sums that ``model`` would release for ``records``."""
    rows = np.array([point for point, _ in records])
    labels = as_asked(model, np.array([label for _, label in records]))
    if "public_y" in public:
        public = {**public, "public_y": as_asked(model, public["public_y"])}
    return told(model, rows, labels, keys, **public)
