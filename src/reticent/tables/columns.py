"""Columns of a table in the type that they have, and words by where they first occur.

A table with one column of words is an array of Python objects, and so are its numbers. A column by
itself keeps its numbers, and each different word of it is read once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Integers
from reticent.core.errors import MissingExtra
from reticent.core.extras import require

FEW = 4096
"""Cells below which looking for equal ones costs more than it saves."""


@dataclass(frozen=True, eq=False)
class Column:
    """The cells of one column.

    Attributes:
        values: the cells, or the different ones among them, shape (k,).
        places: the place in ``values`` of each cell, shape (n,), or None where they are the cells.
    """

    values: npt.NDArray[Any]
    places: Integers | None = None

    def __len__(self) -> int:
        return len(self.values if self.places is None else self.places)

    def cells(self) -> npt.NDArray[Any]:
        """Return all cells, shape (n,)."""
        return self.values if self.places is None else self.values[self.places]


def column_of(cells: npt.NDArray[Any]) -> Column:
    """Return a column of Python objects by its type, or by its different words, if it has one.

    Args:
        cells: shape (n,), of any type.
    """
    if cells.dtype.kind != "O" or len(cells) < FEW:
        return Column(cells)
    found = arrow_cells(lambda arrow: arrow.array(cells, from_pandas=True))
    return Column(cells) if found is None else arrow_column(found) or Column(cells)


def arrow_cells(made: Callable[[Any], Any]) -> Any:
    """Return the array of pyarrow that ``made`` makes, or None where cells are of several types, or
    pyarrow is not installed.
    """
    try:
        arrow = require("pyarrow", extra="arrow")
    except MissingExtra:
        return None
    try:
        cells = made(arrow)
    except (arrow.ArrowException, TypeError, ValueError, OverflowError):
        return None
    return cells.combine_chunks() if isinstance(cells, arrow.ChunkedArray) else cells


def arrow_column(cells: Any) -> Column | None:
    """Return the same column from an array of pyarrow, or None if it is neither of words nor of
    numbers that all have a value.

    Its values are those that Python's objects would have: exact numbers, words, NaN or None where
    there is none.
    """
    kinds = require("pyarrow.types", extra="arrow")
    kind = cells.type
    if any(is_of(kind) for is_of in (kinds.is_dictionary, kinds.is_string, kinds.is_large_string)):
        return _words(cells)
    if kinds.is_floating(kind) or (
        (kinds.is_integer(kind) or kinds.is_boolean(kind)) and not cells.null_count
    ):
        return Column(np.asarray(cells.to_numpy(zero_copy_only=False)))
    return None


def _words(cells: Any) -> Column:
    coded = cells if hasattr(cells, "indices") else cells.dictionary_encode()
    words = coded.dictionary.to_pylist()
    places = coded.indices.cast("int64")
    if places.null_count:
        places = places.fill_null(len(words))
        words.append(None)
    values = np.empty(len(words), dtype=object)
    values[:] = words
    return Column(values, places.to_numpy(zero_copy_only=False))
