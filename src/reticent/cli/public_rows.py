"""Public rows of a file for commands that look at data: inputs, and columns beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from reticent.cli.arrays import NPY, ZIP, read_array, read_stored_array, starts_with
from reticent.cli.bundles import read_inputs
from reticent.core.checks import finite_array
from reticent.core.errors import InvalidInput
from reticent.tables.batches import column_names, read_frame
from reticent.tables.frames import listed, ordered_rows

if TYPE_CHECKING:
    from reticent.cli.bundles import AnsweringSystem

Columns = dict[str, npt.NDArray[Any]]


def read_public(
    path: Path,
    system: AnsweringSystem | None,
    *,
    array: str | None,
    columns: Sequence[str],
    ignore: Sequence[str],
) -> tuple[Any, Columns]:
    """Inputs and further columns.

    Args:
        path: .npz (arrays by name), .npy (inputs alone), CSV, Parquet or Arrow.
        system: takes the inputs; None for rows of numbers that are points already.
        array: which array of an .npz file holds the inputs; None for its only one beside
            ``columns``.
        columns: names of arrays or columns beside the inputs. A table's column may be an input too.
        ignore: columns that are not read.

    Raises:
        InvalidInput: a file that cannot be read, or a name that it does not have.
    """
    if starts_with(path, ZIP):
        inputs = read_stored_array(path, array, name="data", beside=columns)
        return inputs, {name: read_stored_array(path, name, name="data") for name in columns}
    if array is not None:
        raise InvalidInput("array: is for .npz files; other files have columns")
    if starts_with(path, NPY):
        if columns:
            raise InvalidInput(
                f"data={str(path)!r}: an .npy file has no columns beside the inputs; expected an "
                ".npz, CSV, Parquet or Arrow file"
            )
        if system is None:
            return read_array(path, name="data"), {}
        return read_inputs(path, system, name="data", ignore=(), subject_column=None)[0], {}
    frame, names = read_frame(path, name="data"), column_names(path, name="data")
    missing = [name for name in columns if name not in names]
    if missing:
        raise InvalidInput(
            f"data={str(path)!r}: has no column {missing[0]!r}; expected one of {listed(names)}"
        )
    found = {name: ordered_rows(frame, [name])[:, 0].astype(str) for name in columns}
    if system is None:
        kept = [name for name in names if name not in {*columns, *ignore}]
        return finite_array(ordered_rows(frame, kept), name="data", ndim=2), found
    schema = getattr(system.query_, "schema", None)
    taken = set() if schema is None else {attribute.name for attribute in schema.attributes}
    left_out = [*ignore, *(name for name in columns if name not in taken)]
    rows, _ = read_inputs(path, system, name="data", ignore=left_out, subject_column=None)
    return rows, found
