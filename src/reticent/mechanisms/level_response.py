"""The common part of the responses for a certified label: a table of probabilities by level, and an
exact draw.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Integers
from reticent.core.checks import as_array, positive
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.guarantees import Adjacency
from reticent.mechanisms.mechanism import Mechanism
from reticent.noise import Sampler


@dataclass(frozen=True, kw_only=True)
class BinaryResponse(Mechanism, ABC):
    """One of two labels, the given one except with a probability that depends on its level.

    Attributes:
        epsilon: at least 1e-6.
        adjacency: the relation of neighbours.
    """

    epsilon: float
    adjacency: Adjacency

    name: ClassVar[str]

    def __post_init__(self) -> None:
        if positive(self.epsilon, name="epsilon") < 1e-6:
            raise InvalidParameter(f"epsilon={self.epsilon!r}: expected at least 1e-6")

    @abstractmethod
    def flip_probabilities(self, levels: npt.ArrayLike) -> Array:
        """Return the probability of the other label at each level (shape (n,), integers of at least
        0).
        """

    def release(
        self, labels: npt.ArrayLike, levels: npt.ArrayLike, *, sampler: Sampler
    ) -> Integers:
        """Return one label per row, each a separate answer.

        Args:
            labels: shape (n,), 0 or 1, never released as they are.
            levels: shape (n,), integers of at least 0.
            sampler: source of randomness.

        Returns:
            Shape (n,), int64, 0 or 1.

        Raises:
            InvalidInput: wrong shapes or types, a label or level out of its range. Values are
                never shown.
        """
        given, level = checked_labels(labels, levels, classes=2)
        return np.where(sampler.bernoulli(self.flip_probabilities(level)), 1 - given, given)


def checked_labels(
    labels: npt.ArrayLike, levels: npt.ArrayLike, *, classes: int
) -> tuple[Integers, Integers]:
    """Return labels in 0 .. ``classes`` - 1 and as many levels of at least 0, as int64.

    Raises:
        InvalidInput: wrong shapes or types, or out of range. Values are never shown.
    """
    given, level = as_array(labels, name="labels"), as_array(levels, name="levels")
    if given.ndim != 1 or given.shape != level.shape:
        raise InvalidInput(
            f"labels and levels: expected two lists of one length, got {given.shape} and "
            f"{level.shape}"
        )
    if given.size and (given.dtype.kind not in "iu" or level.dtype.kind not in "iu"):
        raise InvalidInput(
            f"labels and levels: expected integers, got {given.dtype} and {level.dtype}"
        )
    if given.size and (given.min() < 0 or given.max() >= classes or level.min() < 0):
        raise InvalidInput(
            f"labels and levels: expected labels from 0 to {classes - 1} and levels of at least 0"
        )
    return given.astype(np.int64), level.astype(np.int64)
