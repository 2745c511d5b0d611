"""The files that a configuration of `reticent fit` names, read."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.cli.arrays import (
    NPY,
    ZIP,
    read_rows_by_position,
    read_stored_array,
    starts_with,
)
from reticent.cli.fit_config import FitConfig
from reticent.core.errors import InvalidInput
from reticent.tables import Numeric, TabularSchema
from reticent.tables.batches import column_names, read_whole

_WIDE = 1e150
"""Numbers of a table without a schema are read as they are; a range is only asked of a schema."""
_GIVEN = ("self", "X", "y", "ledger", "scope", "report")


@dataclass(frozen=True, eq=False)
class FitData:
    """What ``fit`` gets.

    Attributes:
        inputs: shape (n, ...), or a data frame with names.
        labels: shape (n,), or None.
        further: its further arguments.
    """

    inputs: Any
    labels: npt.NDArray[Any] | None
    further: dict[str, npt.NDArray[Any]]


def check_arguments(system: Any, config: FitConfig) -> None:
    """Nothing, if ``fit`` takes the further arguments that the file names, and has all it needs.

    Raises:
        InvalidInput: it takes no such argument, or one is missing.
    """
    known = inspect.signature(system.fit).parameters
    possible = [name for name in known if name not in _GIVEN]
    name = type(system).__name__
    for key in config.data.further:
        if key not in possible:
            raise InvalidInput(
                f"data.further.{key}: fit of a {name} takes no such data; expected "
                f"{', '.join(possible) or 'none'}"
            )
    for key in possible:
        field = known[key]
        needed = field.default is field.empty and field.kind is not field.VAR_KEYWORD
        if needed and key not in config.data.further:
            raise InvalidInput(f"data.further: fit of a {name} needs {key} = FILE")


def read_data(config: FitConfig, schema: TabularSchema | None) -> FitData:
    """The data that the file names.

    Args:
        config: what the file says.
        schema: describes the columns of a table, or None: all are numbers.

    Raises:
        InvalidInput: a file that cannot be read, or keys that do not fit its kind.
    """
    data, path = config.data, config.place(config.data.inputs)
    if data.labels is not None and data.label_column is not None:
        raise InvalidInput("data.labels, data.label_column: expected one of them")
    if data.labels_array is not None and data.labels is None:
        raise InvalidInput("data.labels_array: expected together with data.labels")
    inputs: Any
    labels: npt.NDArray[Any] | None = None
    if starts_with(path, NPY) or starts_with(path, ZIP):
        for key, given in (
            ("label_column", data.label_column is not None),
            ("ignore_columns", bool(data.ignore_columns)),
        ):
            if given:
                raise InvalidInput(
                    f"data.{key}: an array has no column names; expected a CSV, Parquet or "
                    "Arrow file"
                )
        if schema is not None and starts_with(path, NPY):
            inputs = read_rows_by_position(path, schema, name="data.inputs")
        else:
            inputs = read_stored_array(path, data.array, name="data.inputs")
    else:
        if data.array is not None:
            raise InvalidInput("data.array: is for .npz files; other files have columns")
        inputs, labels = _table(path, config, schema)
    if data.labels is not None:
        labels = read_stored_array(config.place(data.labels), data.labels_array, name="data.labels")
    further = {
        key: read_stored_array(config.place(file), None, name=f"data.further.{key}")
        for key, file in data.further.items()
    }
    return FitData(inputs, labels, further)


def _table(
    path: Path, config: FitConfig, schema: TabularSchema | None
) -> tuple[Any, npt.NDArray[Any] | None]:
    """Rows with their names, and labels, of a CSV, Parquet or Arrow file."""
    column, ignored = config.data.label_column, config.data.ignore_columns
    if schema is None:
        left_out = {*ignored, column}
        names = column_names(path, name="data.inputs")
        schema = _numbers([name for name in names if name not in left_out], path)
    found = read_whole(path, schema, ignore=ignored, subject_column=column, name="data.inputs")
    return found.rows, None if found.subjects is None else _labels(list(found.subjects))


def _numbers(names: list[str], path: Path) -> TabularSchema:
    """A schema of numbers for columns of these names."""
    if not names:
        raise InvalidInput(
            f"data.inputs={str(path)!r}: has no columns to learn from in its first line"
        )
    return TabularSchema(tuple(Numeric(name, -_WIDE, _WIDE) for name in names))


def _labels(cells: list[str]) -> npt.NDArray[Any]:
    """Labels as words, or as integers where all of them are."""
    if all(cell.removeprefix("-").isdecimal() and cell.isascii() for cell in cells):
        return np.array([int(cell) for cell in cells])
    return np.array(cells)
