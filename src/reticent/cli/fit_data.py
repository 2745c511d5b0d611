"""The files that a configuration of `reticent fit` names, read."""

from __future__ import annotations

import csv
import inspect
import io
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.cli.arrays import NPY, read_array, starts_with
from reticent.cli.fit_config import FitConfig
from reticent.cli.tables import read_table
from reticent.core.errors import InvalidInput
from reticent.core.files import unpacked
from reticent.tables import Numeric, TabularSchema
from reticent.tables.files import read_names, read_rows

_ZIP = b"PK\x03\x04"
_GZIP = b"\x1f\x8b"
_WIDE = 1e150
"""Numbers of a table without a schema are read as they are; a range is only asked of a schema."""
_GIVEN = ("self", "X", "y", "ledger", "scope", "report")


@dataclass(frozen=True, eq=False)
class FitData:
    """What ``fit`` gets.

    Attributes:
        inputs: shape (n, ...).
        labels: shape (n,), or None.
        further: its further arguments.
    """

    inputs: npt.NDArray[Any]
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
    inputs: npt.NDArray[Any]
    labels: npt.NDArray[Any] | None = None
    if starts_with(path, NPY) or starts_with(path, _ZIP):
        for key, given in (
            ("label_column", data.label_column is not None),
            ("ignore_columns", bool(data.ignore_columns)),
        ):
            if given:
                raise InvalidInput(f"data.{key}: an array has no column names; expected a CSV file")
        if schema is not None and starts_with(path, NPY):
            inputs = read_table(path, schema, ignore=(), name="data.inputs")
        else:
            inputs = _array(path, data.array, name="data.inputs")
    else:
        if data.array is not None:
            raise InvalidInput("data.array: is for .npz files; a CSV file has columns")
        inputs, labels = _table(path, config, schema)
    if data.labels is not None:
        labels = _array(config.place(data.labels), data.labels_array, name="data.labels")
    further = {
        key: _array(config.place(file), None, name=f"data.further.{key}")
        for key, file in data.further.items()
    }
    return FitData(inputs, labels, further)


def _table(
    path: Path, config: FitConfig, schema: TabularSchema | None
) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
    """Rows and labels of one reading of a CSV file: those of two need not belong together."""
    where, column = f"data.inputs={str(path)!r}", config.data.label_column
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInput(
            f"{where}: cannot be read ({error.strerror}); expected an .npy, .npz or CSV file"
        ) from error
    ignored = [*config.data.ignore_columns, *([] if column is None else [column])]
    columns = _numbers(content, ignored, where) if schema is None else schema
    rows = read_rows(content, columns, ignore=ignored, name=where)
    if column is None:
        return rows, None
    return rows, _labels(read_names(content, column, name=where))


def _numbers(content: bytes, ignored: list[str], where: str) -> TabularSchema:
    """A schema of numbers for all columns in the first line but the ignored ones."""
    plain = unpacked(content) if content.startswith(_GZIP) else content
    try:
        lines = io.TextIOWrapper(io.BytesIO(plain), encoding="utf-8-sig", newline="")
        header = next(csv.reader(lines, strict=True, skipinitialspace=True), [])
    except (UnicodeDecodeError, csv.Error):
        raise InvalidInput(f"{where}: expected comma-separated UTF-8 text") from None
    names = [cell.strip() for cell in header]
    left = [name for name in names if name not in ignored]
    if not left:
        raise InvalidInput(f"{where}: has no columns to learn from in its first line")
    return TabularSchema(tuple(Numeric(name, -_WIDE, _WIDE) for name in left))


def _labels(cells: list[str]) -> npt.NDArray[Any]:
    """Labels as words, or as integers where all of them are."""
    if all(cell.removeprefix("-").isdecimal() and cell.isascii() for cell in cells):
        return np.array([int(cell) for cell in cells])
    return np.array(cells)


def _array(path: Path, array: str | None, *, name: str) -> npt.NDArray[Any]:
    """An array of an .npy or .npz file; nothing is unpickled."""
    where = f"{name}={str(path)!r}"
    if not starts_with(path, _ZIP):
        if array is not None:
            raise InvalidInput(f"{where}: expected an .npz file, which has arrays of that name")
        return read_array(path, name=name)
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            chosen = stored.files[0] if array is None and len(stored.files) == 1 else array
            if chosen not in stored.files:
                raise InvalidInput(
                    f"{where}: expected the name of one of its arrays, {', '.join(stored.files)}"
                )
            return np.asarray(stored[chosen])
    except (ValueError, EOFError, OSError, MemoryError, zipfile.BadZipFile, zlib.error) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(
            f"{where}: damaged, cut short, or holding Python objects; write it again"
        ) from error
