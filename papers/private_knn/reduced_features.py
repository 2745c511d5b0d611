"""Features along the principal directions of public ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.core.arrays import Array
from reticent.core.checks import count
from reticent.training.features import FeatureBall, FeatureMap, Origin


@dataclass(frozen=True, eq=False)
class ReducedFeatures(FeatureMap):
    """Another map's features along the principal directions of public ones, made by
    ``ReducedFeatures.of``.

    Attributes:
        base: the other map.
        center: shape (d,), mean of the public features.
        directions: shape (m, d), orthonormal rows.
        radius: the radius of the ball around 0 that is said to hold features, twice that of the
            public ones.
    """

    base: FeatureMap
    center: Array
    directions: Array
    radius: float

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name on cards and receipts."""
        return f"{len(self.directions)} principal components of {self.base.name}"

    @property
    def origin(self) -> Origin:  # type: ignore[override]
        """The data that it was made from."""
        return Origin.PUBLIC if self.base.origin is Origin.FIXED else self.base.origin

    @classmethod
    def of(
        cls, base: FeatureMap, public_inputs: npt.ArrayLike, *, dimension: int
    ) -> ReducedFeatures:
        """Return the map for the ``dimension`` directions in which the features of public inputs
        vary most.

        Args:
            base: the other map.
            public_inputs: shape (n, p), never private records.
            dimension: at least 1. At most as many as there are inputs and features are used.

        Example:
            >>> from reticent.training.features import IdentityFeatures
            >>> ReducedFeatures.of(IdentityFeatures(), [[0, 0], [2, 0]], dimension=1).features(
            ...     [[3, 7]]
            ... ).round(6).tolist()
            [[2.0]]
        """
        features = base.features(public_inputs)
        center = features.mean(axis=0)
        _, _, directions = np.linalg.svd(features - center, full_matrices=False)
        directions = directions[: count(dimension, name="dimension")]
        # The sign of a direction is arbitrary. The largest entry is made positive, so that equal
        # inputs give equal maps.
        largest = np.take_along_axis(directions, np.abs(directions).argmax(axis=1)[:, None], axis=1)
        directions = directions * np.where(largest < 0, -1.0, 1.0)
        length = float(np.sqrt(np.square((features - center) @ directions.T).sum(axis=1).max()))
        return cls(base, center, directions, 2.0 * length or 1.0)

    @property
    @override
    def columns(self) -> int | None:
        """The ``columns`` of the other map."""
        return self.base.columns

    @property
    @override
    def ball(self) -> FeatureBall:
        """The ball of radius ``radius`` around 0."""
        return FeatureBall(np.zeros(len(self.directions)), self.radius)

    @override
    def row(self, row: Array) -> Array:
        """Return the features of one row, as ``FeatureMap.row`` does."""
        return np.asarray(self.directions @ (self.base.row(row)[0] - self.center))[None, :]
