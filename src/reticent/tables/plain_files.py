"""Public files without a schema: every column as what its cells look like."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.errors import InvalidInput
from reticent.tables.batches import column_names, file_kind, open_arrow
from reticent.tables.cells import instant_of_word, truth_of_word
from reticent.tables.files import csv_cells
from reticent.tables.frames import NamedRows

_WORDS_OF_TRUTH = frozenset({"true", "false"})


def read_frame(path: str | Path, *, name: str = "path") -> Any:
    """A data frame of all columns of a CSV, Parquet or Arrow file.

    In a CSV file a column whose cells are all numbers holds numbers, one of true and false truth
    values, one of ISO 8601 dates datetime values, and any other words; an empty cell is no value.

    Args:
        path: a plain file.
        name: what the caller calls it; used in messages.

    Raises:
        InvalidInput: the file cannot be read whole, or has no rows.
        MissingExtra: a Parquet or Arrow file, and pyarrow is not installed.
    """
    if file_kind(path, name=name) != "csv":
        return open_arrow(Path(path), name=name)
    names = column_names(path, name=name)
    where = f"{name}={str(path)!r}"
    repeated = sorted({column for column in names if names.count(column) > 1})
    if repeated:
        raise InvalidInput(f"{where}: has more than one column {repeated[0]!r}")
    cells = csv_cells(path, name=name)
    if not cells:
        raise InvalidInput(f"{where}: has a header line and no rows")
    table = np.empty((len(cells), len(names)), dtype=object)
    for place, column in enumerate(zip(*cells, strict=True)):
        table[:, place] = _values([cell.strip() for cell in column])
    return NamedRows(table, tuple(names))


def _values(words: list[str]) -> npt.NDArray[np.object_]:
    """Cells of a column as what all of them look like; None where empty."""
    found = np.empty(len(words), dtype=object)
    present = [word for word in words if word]
    found[:] = words
    if present:
        for read in (_number, _truth, _time):
            values = [read(word) if word else None for word in words]
            if all(value is not None for value, word in zip(values, words, strict=True) if word):
                found[:] = values
                return found
    found[[not word for word in words]] = None
    return found


def _number(word: str) -> float | None:
    if not word.isascii() or "_" in word:
        return None
    try:
        return float(word)
    except ValueError:
        return None


def _truth(word: str) -> bool | None:
    return truth_of_word(word) if word.lower() in _WORDS_OF_TRUTH else None


def _time(word: str) -> np.datetime64 | None:
    instant = instant_of_word(word)
    return None if instant is None else np.datetime64(int(instant), "us")
