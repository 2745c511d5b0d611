"""PATE, the baseline of Private-kNN: many teachers, each trained on its own part of the private
records, vote.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Integers
from reticent.core.checks import count, finite_array, positive
from reticent.core.errors import InvalidInput


@dataclass(frozen=True, eq=False)
class PateTeachers:
    """Linear teachers on public features; made by ``PateTeachers.of``.

    **Guarantee.** Adding or removing one record (with keys: all records of one key) retrains one
    teacher and no other, so of every query's votes at most one moves: the largest count changes by
    at most 1, the counts by at most sqrt(2) in l2 and 2 in l1. That is what ``NoisyScreening`` and
    ``NoisyArgmax`` need, with ``sampling_probability=1`` and as many ``neighbours`` as teachers.

    *Why.* Which teacher a record goes to is a hash of the record's key, or of the record itself,
    and nobody's list position. A teacher is a function of the *set* of its records (they are sorted
    by that hash), of public numbers, and of nothing else. A teacher without records votes for the
    first class.

    Attributes:
        center: shape (d,), public.
        spread: shape (d,), public.
        weights: shape (teachers, d + 1, classes).

    Reference: Papernot et al. 2017 and 2018. **Differs from the papers**: teachers are ridge
    regressions on fixed features
        instead of
    networks, so that hundreds of them train in seconds; the split is by hash instead of by
    position.
    """

    center: Array
    spread: Array
    weights: Array

    @classmethod
    def of(
        cls,
        features: npt.ArrayLike,
        codes: npt.ArrayLike,
        keys: Sequence[Any] | None,
        *,
        teachers: int,
        classes: int,
        public_features: npt.ArrayLike,
        ridge: float,
    ) -> PateTeachers:
        """Trained teachers.

        Args:
            features: shape (n, d), of private records, row by row.
            codes: shape (n,), 0 to classes - 1.
            keys: one per record or None, as in ``PrivateKNNClassifier.fit``; texts or integers.
            teachers: how many, at least 2.
            classes: how many, at least 2.
            public_features: shape (m, d); their mean and spread scale all features.
            ridge: weight of the squared norm, in records, above 0.

        Raises:
            InvalidInput: shapes that do not fit.
        """
        public = finite_array(public_features, name="public_features", ndim=2)
        rows = finite_array(features, name="features", ndim=2, columns=public.shape[1])
        labels = np.asarray(codes)
        if (
            labels.shape != (len(rows),)
            or labels.dtype.kind not in "iu"
            or labels.min() < 0
            or labels.max() >= classes
        ):
            raise InvalidInput(
                f"codes: expected 0..{classes - 1} for each of {len(rows)} records, got "
                f"shape={labels.shape}"
            )
        if keys is not None and len(keys) != len(rows):
            raise InvalidInput(
                f"keys: expected one per record, got {len(keys)} for {len(rows)} records"
            )
        count(teachers, name="teachers", minimum=2)
        count(classes, name="classes", minimum=2)
        weight = positive(ridge, name="ridge")
        spread, center = public.std(axis=0), public.mean(axis=0)
        # A column that no public row varies in stays in its own unit: private ones may vary in it.
        # The spread of equal numbers need not be 0 in doubles.
        spread = np.where(spread > 1e-12 * np.abs(center), spread, 1.0)
        own = [
            hashlib.sha256(row.tobytes() + bytes([0]) + str(int(code)).encode()).digest()
            for row, code in zip(rows, labels, strict=True)
        ]
        homes = (
            own if keys is None else [hashlib.sha256(repr(key).encode()).digest() for key in keys]
        )
        parts: list[list[int]] = [[] for _ in range(teachers)]
        for place in sorted(range(len(rows)), key=own.__getitem__):
            parts[int.from_bytes(homes[place][:8], "big") % teachers].append(place)
        scaled = _with_one((rows - center) / spread)
        weights = np.stack([_ridge(scaled[part], labels[part], classes, weight) for part in parts])
        return cls(center, spread, weights)

    def votes(self, features: npt.ArrayLike) -> Integers:
        """How many teachers choose each class, shape (q, classes), for public features of shape (q,
        d). Private.

        Example:
            >>> line = np.arange(40.0)[:, None]
            >>> teachers = PateTeachers.of(
            ...     line,
            ...     (line[:, 0] > 19).astype(int),
            ...     None,
            ...     teachers=4,
            ...     classes=2,
            ...     public_features=line,
            ...     ridge=0.1,
            ... )
            >>> teachers.votes([[0.0], [39.0]]).tolist()
            [[4, 0], [0, 4]]
        """
        rows = finite_array(features, name="features", ndim=2, columns=len(self.center))
        scaled = _with_one((rows - self.center) / self.spread)
        totals = np.zeros((len(rows), self.weights.shape[2]), dtype=np.int64)
        for teacher in self.weights:
            totals[np.arange(len(rows)), (scaled @ teacher).argmax(axis=1)] += 1
        return totals


def _with_one(rows: Array) -> Array:
    return np.concatenate([rows, np.ones((len(rows), 1))], axis=1)


def _ridge(rows: Array, labels: npt.NDArray[Any], classes: int, ridge: float) -> Array:
    targets = np.eye(classes)[labels] if len(labels) else np.zeros((0, classes))
    return np.asarray(
        np.linalg.solve(rows.T @ rows + ridge * np.eye(rows.shape[1]), rows.T @ targets)
    )
