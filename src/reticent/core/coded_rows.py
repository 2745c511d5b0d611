"""Encoded table rows without their zeros: numbers in fixed coordinates, and the coordinate of each
category's one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Integers
from reticent.core.errors import InvalidInput

Codes = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Rows of ``dimension`` coordinates. Coordinates outside ``places`` and the row's ``codes`` are
    0.

    Attributes:
        numbers: shape (n, a), float64.
        places: shape (a,), int32, the coordinates that the numbers stand in.
        codes: shape (n, b), int32, further coordinates, each of which is ``one``, with no
            coordinate twice in a row.
        one: value at the coordinates of codes.
        dimension: number of coordinates of a whole row.

    Example:
        >>> places, codes = np.array([0], dtype=np.int32), np.array([[2]], dtype=np.int32)
        >>> rows = CodedRows(np.array([[0.5]]), places, codes, 2.0, 3)
        >>> rows.dense().tolist(), rows.times(np.array([[1.0], [10.0], [100.0]])).tolist()
        ([[0.5, 0.0, 2.0]], [[200.5]])
    """

    numbers: Array
    places: Codes
    codes: Codes
    one: float
    dimension: int

    def __post_init__(self) -> None:
        if self.numbers.shape != (len(self.codes), len(self.places)) or self.codes.ndim != 2:
            raise InvalidInput(
                f"coded rows: expected a number for each of {len(self.places)} places in each "
                f"of {len(self.codes)} rows, got "
                f"numbers of shape {self.numbers.shape}"
            )

    @classmethod
    def of(cls, rows: Array) -> CodedRows:
        """Return dense rows, shape (n, dimension), as numbers alone."""
        places = np.arange(rows.shape[1], dtype=np.int32)
        return cls(
            np.asarray(rows, dtype=np.float64),
            places,
            np.empty((len(rows), 0), dtype=np.int32),
            1.0,
            rows.shape[1],
        )

    def __len__(self) -> int:
        return len(self.codes)

    def part(self, rows: slice | Integers) -> CodedRows:
        """Return some of the rows."""
        return CodedRows(
            self.numbers[rows], self.places, self.codes[rows], self.one, self.dimension
        )

    @classmethod
    def together(cls, parts: Sequence[CodedRows]) -> CodedRows:
        """Return the rows of ``parts``, all encoded by one schema, one after the other."""
        first = parts[0]
        return cls(
            np.concatenate([part.numbers for part in parts]),
            first.places,
            np.concatenate([part.codes for part in parts]),
            first.one,
            first.dimension,
        )

    def dense(self) -> Array:
        """Return whole rows, shape (n, dimension)."""
        rows = np.zeros((len(self), self.dimension))
        rows[:, self.places] = self.numbers
        rows[np.arange(len(self))[:, None], self.codes] = self.one
        return rows

    def times(self, matrix: Array) -> Array:
        """Return these rows times ``matrix`` of shape (dimension, m), shape (n, m).

        A row's result is the sum of its entries times rows of the matrix, added one after the
        other, numbers first. It does not depend on the other rows, and a number that is 0 does not
        change it.
        """
        values = np.full((len(self), len(self.places) + self.codes.shape[1]), self.one)
        values[:, : len(self.places)] = self.numbers
        coordinates = np.empty(values.shape, dtype=np.int32)
        coordinates[:, : len(self.places)], coordinates[:, len(self.places) :] = (
            self.places,
            self.codes,
        )
        ends = np.arange(len(self) + 1, dtype=np.int32) * np.int32(values.shape[1])
        from scipy.sparse import csr_array

        rows = csr_array(
            (values.ravel(), coordinates.ravel(), ends), shape=(len(self), self.dimension)
        )
        return np.asarray(rows @ matrix)
