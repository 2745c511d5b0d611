"""Rows of a table from a file, for the command line: CSV with a header line, or an array of
numbers or words.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from reticent.cli.arrays import NPY, read_array, starts_with
from reticent.core.errors import InvalidInput

if TYPE_CHECKING:
    from reticent.tables.schema import TabularSchema


def read_table(
    path: Path, schema: TabularSchema, *, ignore: Sequence[str], name: str
) -> npt.NDArray[Any]:
    """Rows as ``schema`` describes them, shape (n, columns): a CSV file's by name, an .npy file's
    by position.

    Args:
        path: CSV file, plain or gzipped, or .npy file; told apart by their first bytes.
        schema: what the columns are.
        ignore: columns of a CSV file that are not read.
        name: what the caller calls the file; used in messages.

    Raises:
        InvalidInput: see ``read_rows`` and ``read_array``; or columns to ignore in a file that
            names none.
    """
    from reticent.tables.files import read_rows, rows_of_words

    if not starts_with(path, NPY):
        return read_rows(path, schema, ignore=ignore, name=name)
    if ignore:
        raise InvalidInput(
            f"{name}={str(path)!r}: an .npy file has no names of columns to ignore; take the "
            "columns out"
        )
    array = read_array(path, name=name)
    return (
        rows_of_words(array, schema, name=f"{name}={str(path)!r}")
        if array.dtype.kind == "U"
        else array
    )


def read_table_of_subjects(
    path: Path, schema: TabularSchema, *, subject_column: str, ignore: Sequence[str], name: str
) -> tuple[npt.NDArray[Any], list[str]]:
    """Rows of a CSV file as ``read_table`` reads them, and for each row whose it is.

    The file is read once: rows and subjects of two readings need not belong together.

    Args:
        path: CSV file, plain or gzipped.
        schema: what the columns are.
        subject_column: the column with the subjects, which ``schema`` does not name.
        ignore: further columns that are not read.
        name: what the caller calls the file; used in messages.

    Raises:
        InvalidInput: an .npy file, a column that the schema needs, or see ``read_names`` and
            ``read_rows``.
    """
    from reticent.tables.files import read_names, read_rows

    where = f"{name}={str(path)!r}"
    if subject_column.strip() in [column.strip() for column in schema.column_names]:
        raise InvalidInput(
            f"subject_column={subject_column!r}: the bundle needs that column; expected one "
            "that its schema does not name"
        )
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInput(
            f"{where}: cannot be read ({error.strerror}); expected a CSV file"
        ) from error
    if content.startswith(NPY):
        raise InvalidInput(
            f"{where}: an .npy file has no column {subject_column!r}; expected a CSV file with "
            "--subject-column"
        )
    subjects = read_names(content, subject_column, name=where)
    rows = read_rows(content, schema, ignore=[*ignore, subject_column], name=where)
    if len(rows) != len(subjects):
        raise InvalidInput(
            f"{where}: has {len(rows)} rows and {len(subjects)} subjects; expected one subject "
            "for each row"
        )
    return rows, subjects
