"""Released labels as a classifier of their own, the baseline that a student has to beat.

It sees public rows and released labels, nothing else, so it is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from reticent.core.arrays import Array, Integers
from reticent.core.checks import count, finite_array
from reticent.core.errors import InvalidInput

_BLOCK = 1024


@dataclass(frozen=True, eq=False)
class NearestLabels:
    """The classifier that gives every row the label of the nearest row that has one, made by
    ``of``.

    Of several nearest rows the first counts. Where all labels were withheld, the answer is the
    first class.

    Attributes:
        features: the features of the rows that have a label, shape (m, d).
        labels: shape (m,), their codes.
        classes: the number of labels.

    Example:
        >>> own = NearestLabels.of([[0.0], [1.0], [2.0]], [1, -1, 0], classes=2)
        >>> own.predict([[0.9], [1.6]]).tolist()
        [1, 0]
    """

    features: Array
    labels: Integers
    classes: int

    @classmethod
    def of(cls, features: npt.ArrayLike, labels: npt.ArrayLike, *, classes: int) -> Self:
        """Return the classifier of released labels.

        Args:
            features: shape (n, d), public.
            labels: shape (n,), codes below ``classes``, negative where none was released.
            classes: the number of labels.

        Raises:
            InvalidInput: features or labels have other shapes, or codes are out of range.
        """
        rows = finite_array(features, name="features", ndim=2)
        codes = np.asarray(labels)
        if codes.shape != (len(rows),) or codes.dtype.kind not in "iu":
            raise InvalidInput(
                f"labels: expected {len(rows)} whole numbers, got shape={codes.shape}"
            )
        if codes.size and codes.max() >= count(classes, name="classes", minimum=2):
            raise InvalidInput(f"labels: expected codes below classes={classes}")
        released = codes >= 0
        return cls(rows[released], codes[released].astype(np.int64), classes)

    def predict(self, features: npt.ArrayLike) -> Integers:
        """Return codes of labels, shape (n,), of features of shape (n, d)."""
        rows = finite_array(features, name="features", ndim=2, columns=self.features.shape[1])
        found = np.zeros(len(rows), dtype=np.int64)
        if not len(self.labels):
            return found
        for start in range(0, len(rows), _BLOCK):
            block = slice(start, start + _BLOCK)
            places = cdist(rows[block], self.features, "sqeuclidean").argmin(axis=1)
            found[block] = self.labels[places]
        return found

    def probabilities(self, features: npt.ArrayLike) -> Array:
        """Return 1 for the label that is given and 0 for all others, shape (n, classes)."""
        return np.eye(self.classes)[self.predict(features)]
