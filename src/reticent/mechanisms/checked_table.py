"""What tables of labels on public cells share: an exact check, and drawing."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.checks import positive
from reticent.core.errors import InvalidInput
from reticent.core.guarantees import Neighborhood
from reticent.grids.shares import WHOLE, Cells, Shares, check_shares
from reticent.mechanisms.mechanism import Mechanism
from reticent.noise import Sampler

Labels = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class CheckedTable(Mechanism):
    """One label for each point, with the probabilities that stand in its cell's column; use
    ``LabelTable`` or ``GraphTable``.

    Attributes:
        shares: shape (labels, cells), uint32: probabilities in multiples of 2^-32. Public.
        epsilon: above 0.
        adjacency: neighbours; their cells touch.
    """

    shares: Shares
    epsilon: float
    adjacency: Neighborhood

    name: ClassVar[str]

    def __post_init__(self) -> None:
        self._check_adjacency()
        positive(self.epsilon, name="epsilon")
        shares, size = self.shares, self.cells.size
        if (
            shares.dtype != np.uint32
            or shares.ndim != 2
            or not (2 <= len(shares) <= 1000 and shares.shape[1] == size)
        ):
            raise InvalidInput(
                f"shares: expected uint32 of shape (labels, {size}) with 2 to 1000 "
                f"labels, got {shares.dtype} {shares.shape}"
            )
        wrong = int(np.count_nonzero(shares.sum(axis=0, dtype=np.uint64) != WHOLE))
        if wrong:
            raise InvalidInput(f"shares: {wrong} columns do not sum to 2^32")
        check_shares(shares, shares, lattice=self.cells, epsilon=self.epsilon, what=self.name)
        frozen = shares.copy()  # a later change by the caller would escape the check
        frozen.setflags(write=False)
        object.__setattr__(self, "shares", frozen)

    @property
    @abstractmethod
    def cells(self) -> Cells:
        """The public cells, and which of them touch."""

    @abstractmethod
    def _check_adjacency(self) -> None:
        """Raises ``InvalidParameter`` unless neighbours lie in touching cells."""

    @property
    def classes(self) -> int:
        """Number of labels."""
        return len(self.shares)

    def probabilities(self, points: npt.ArrayLike) -> Array:
        """Probability of each label for each point, shape (n, labels), exact. Private, where the
        points are.

        Args:
            points: shape (n, dimension), finite.
        """
        return np.asarray(self.shares[:, self.cells.cells(points)].T / WHOLE)

    def release(self, points: npt.ArrayLike, *, sampler: Sampler) -> Labels:
        """One label for each point.

        Args:
            points: shape (n, dimension), finite.
            sampler: source of randomness.

        Returns:
            Shape (n,), int64, in 0 .. classes - 1.

        Raises:
            InvalidInput: wrong shape, NaN or infinity. Values are never shown.
        """
        return draw(self.shares[:, self.cells.cells(points)], sampler)


def draw(shares: Shares, sampler: Sampler) -> Labels:
    """One row number of each column of ``shares`` with exactly the probability share / 2^32.

    Args:
        shares: shape (labels, n), uint32; columns sum to 2^32.
        sampler: source of randomness.
    """
    ends = np.cumsum(shares, axis=0, dtype=np.int64)
    uniform = sampler.uniform_integers(np.full(shares.shape[1], WHOLE, dtype=np.int64))
    return np.asarray((uniform >= ends).sum(axis=0), dtype=np.int64)
