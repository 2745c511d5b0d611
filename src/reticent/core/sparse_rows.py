"""Rows of mostly zeros, each with the same number of entries that may differ from 0: what an encoded table is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from reticent.core.errors import InvalidInput

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Rows of ``dimension`` coordinates, of which those not listed are 0.

    Attributes:
        values: shape (n, k), float64.
        coordinates: shape (n, k), int32, where the values stand; no coordinate twice in a row.
        dimension: coordinates of a whole row.

    Example:
        >>> rows = SparseRows(np.array([[0.5, 2.0]]), np.array([[0, 2]], dtype=np.int32), 3)
        >>> rows.dense().tolist(), rows.times(np.array([[1.0], [10.0], [100.0]])).tolist()
        ([[0.5, 0.0, 2.0]], [[200.5]])
    """

    values: Array
    coordinates: npt.NDArray[np.int32]
    dimension: int

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape != self.coordinates.shape:
            raise InvalidInput(
                f"sparse rows: expected values and coordinates of one shape (n, k), got {self.values.shape} and "
                f"{self.coordinates.shape}"
            )

    @classmethod
    def of(cls, rows: Array) -> SparseRows:
        """All entries of dense rows, shape (n, dimension), zeros included."""
        coordinates = np.broadcast_to(np.arange(rows.shape[1], dtype=np.int32), rows.shape)
        return cls(np.asarray(rows, dtype=np.float64), coordinates, rows.shape[1])

    def __len__(self) -> int:
        return len(self.values)

    def part(self, rows: slice) -> SparseRows:
        """Some of the rows."""
        return SparseRows(self.values[rows], self.coordinates[rows], self.dimension)

    def dense(self) -> Array:
        """Whole rows, shape (n, dimension)."""
        rows = np.zeros((len(self), self.dimension))
        np.put_along_axis(rows, self.coordinates.astype(np.intp), self.values, axis=1)
        return rows

    def times(self, matrix: Array) -> Array:
        """These rows times ``matrix`` of shape (dimension, m), shape (n, m).

        A row's result is the sum of its values times rows of the matrix, added one after the other in the order of ``values``:
        it does not depend on the other rows, and zeros that are listed do not change it.
        """
        ends = np.arange(0, self.values.size + 1, max(1, self.values.shape[1]))
        shape = (len(self), self.dimension)
        rows = csr_array((self.values.ravel(), self.coordinates.ravel(), ends[: len(self) + 1]), shape=shape)
        return np.asarray(rows @ matrix)
