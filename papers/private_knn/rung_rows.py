"""What every way to label pictures works on: features of the private, the public and the scored
part, the pictures that teachers label, and the student of their labels.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from papers.datasets import load
from papers.private_knn.surest_student import surest_student
from reticent.core.arrays import Integers
from reticent.training.public_features import PatchFeatures

Array = npt.NDArray[np.float64]

DELTA = 1e-5
PUBLIC = 2000
DIMENSION = 40
MOST_DIRECTIONS = 400
ANSWERS = 600
"""Labels that the students' teachers give; a number that was fixed beforehand."""

MAPS: dict[str, dict[str, Any]] = {
    "mnist": {"image_shape": (1, 28, 28), "upright": True},
    "fashion": {"image_shape": (1, 28, 28), "mirrored": True},
    "cifar10": {"image_shape": (3, 32, 32), "mirrored": True},
    "digits": {"image_shape": (1, 8, 8), "patch": 3, "filters": 100},
}


@dataclass(frozen=True, eq=False)
class Rows:
    """Features of the three parts."""

    private: Array
    codes: Integers
    public: Array
    public_codes: Integers
    scored: Array
    truth: Integers
    classes: int

    @cached_property
    def near(self) -> Rows:
        """The same in the first principal directions of the public rows, for distances."""
        return self._turned(np.ones(self.public.shape[1]), DIMENSION)

    @cached_property
    def scaled(self) -> Rows:
        """The same, each feature over its spread among the public rows, in their first principal
        directions, as many as a released model keeps at most.
        """
        spread = self.public.std(axis=0)
        return self._turned(np.where(spread > 0, spread, 1.0), MOST_DIRECTIONS)

    def _turned(self, units: Array, dimension: int) -> Rows:
        centre = self.public.mean(axis=0)
        seen = (self.public - centre) / units
        # Fewer public rows than features as a rule, so their products with each other are smaller.
        squares, turned = np.linalg.eigh(
            seen @ seen.T if len(seen) < seen.shape[1] else seen.T @ seen
        )
        kept = np.argsort(-squares, kind="stable")[: min(dimension, seen.shape[1], len(seen) - 1)]
        directions = turned[:, kept]
        if len(seen) < seen.shape[1]:
            directions = seen.T @ directions / np.sqrt(squares[kept])
        directions /= units[:, None]
        parts = [
            part @ directions - centre @ directions
            for part in (self.private, self.public, self.scored)
        ]
        return replace(self, private=parts[0], public=parts[1], scored=parts[2])


class ScaledAlready:
    """A feature map that leaves features as they are, in their common unit."""

    name = "patch features in principal directions of public rows"

    def features(self, inputs: npt.ArrayLike) -> Array:
        """The inputs."""
        return np.asarray(inputs, dtype=np.float64)


def rows_of(data: str, folder: Path) -> Rows:
    """Features of the pictures, computed once and kept in ``folder``."""
    loaded = load(data)
    public = min(PUBLIC, len(loaded.train_rows) // 5)
    kept = folder / f"patch-features-{data}.npz"
    if not kept.is_file():
        learned = PatchFeatures(**MAPS[data]).fit(loaded.train_rows[:public])
        np.savez(
            kept,
            train=learned.features(loaded.train_rows).astype(np.float32),
            test=learned.features(loaded.test_rows).astype(np.float32),
        )
    with np.load(kept) as stored:
        train, test = (stored[name].astype(np.float64) for name in ("train", "test"))
    codes = loaded.train_labels
    return Rows(
        train[public:],
        codes[public:],
        train[:public],
        codes[:public],
        test,
        loaded.test_labels,
        loaded.classes,
    )


@dataclass(frozen=True)
class Found:
    """What one way came to.

    Attributes:
        right: the share of right answers, for each seed of the noise.
        settings: those that public rows chose.
    """

    right: list[float]
    settings: dict[str, Any] = field(default_factory=dict)


def asked_places(rows: Rows) -> Integers:
    """The public pictures that teachers label, the same for all of them."""
    return np.random.default_rng(0).permutation(len(rows.public))[:ANSWERS]


def taught_right(rows: Rows, asked: Integers, labels: Integers, seed: int) -> float:
    """What the student of released labels gets right of the scored pictures.

    Args:
        rows: features.
        asked: places of the public pictures that were labelled.
        labels: shape (asked,), released; negative where withheld.
        seed: of the student.
    """
    student = surest_student(rows.public[asked], labels, classes=rows.classes, seed=seed)
    return float((student.predict(rows.scored) == rows.truth).mean())
