"""Rows of a file in batches, by name: CSV, Parquet and Arrow IPC, in constant memory.

No message shows a cell. A batch is cut by the number of rows alone, so that the same file gives the
same batches again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from reticent.core.checks import count
from reticent.core.errors import InvalidInput
from reticent.core.extras import require
from reticent.tables.files import csv_batches, csv_names, read_names, read_rows, subject_name
from reticent.tables.frames import NamedRows, check_columns, listed
from reticent.tables.schema import TabularSchema

LARGEST_BATCH = 100_000
"""Rows of a batch at most: with more, 10^7 rows of Parquet no longer fit into 1 GiB."""

_ARROW_FILE, _PARQUET = b"ARROW1", b"PAR1"


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows that stand one after the other in a file.

    Attributes:
        rows: a data frame with the columns that were asked for.
        subjects: for each row whose it is, or None where no column says so.
    """

    rows: Any
    subjects: tuple[str, ...] | None

    def __len__(self) -> int:
        return len(self.rows)


def file_kind(path: str | Path, *, name: str = "path") -> str:
    """What a file holds by its first bytes: "parquet", "arrow" or "csv".

    Raises:
        InvalidInput: it cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            start = file.read(8)
    except OSError as error:
        raise InvalidInput(
            f"{name}={str(path)!r}: cannot be read ({error.strerror}); expected a CSV, Parquet or "
            "Arrow file"
        ) from error
    return "parquet" if start[:4] == _PARQUET else "arrow" if start[:6] == _ARROW_FILE else "csv"


def read_batches(
    path: str | Path,
    columns: TabularSchema | Sequence[str],
    *,
    rows: int = LARGEST_BATCH,
    ignore: Sequence[str] = (),
    subject_column: str | None = None,
    skip: int = 0,
    name: str = "path",
) -> Iterator[Batch]:
    """The rows of a CSV, Parquet or Arrow IPC file, ``rows`` of them at a time.

    Args:
        path: a plain file.
        columns: the schema whose columns are read, or the names of columns of numbers.
        rows: of a batch, from 1 to ``LARGEST_BATCH``; the last may be shorter.
        ignore: columns of the file that are not read, such as labels; each must be there.
        subject_column: a column that says whose each row is, and that ``columns`` does not name.
        skip: rows at the beginning that are left out.
        name: what the caller calls the file; used in messages.

    Yields:
        Batches. Columns are checked before the first; cells of CSV files when they are read.

    Raises:
        InvalidInput: the file cannot be read whole, or has no rows, or lacks a column, or has one
            that is neither named nor ignored.
        MissingExtra: a Parquet or Arrow file, and pyarrow is not installed.
    """
    if count(rows, name="rows") > LARGEST_BATCH:
        raise InvalidInput(f"rows={rows}: expected at most {LARGEST_BATCH}")
    schema = columns if isinstance(columns, TabularSchema) else _numbers(columns)
    left_out = [*ignore] if subject_column is None else [*ignore, subject_column]
    _check_subject(subject_column, schema)
    kind = file_kind(path, name=name)
    if kind == "csv":
        parts = csv_batches(path, schema, ignore=left_out, subject_column=subject_column, name=name)
        pieces: Iterator[Batch] = (Batch(part, subjects) for part, subjects in parts)
    else:
        pieces = _arrow_batches(Path(path), kind, schema, ignore, subject_column, rows, name)
    return _cut(pieces, rows, skip, f"{name}={str(path)!r}")


def read_whole(
    path: str | Path,
    columns: TabularSchema | Sequence[str],
    *,
    ignore: Sequence[str] = (),
    subject_column: str | None = None,
    name: str = "path",
) -> Batch:
    """All rows of a CSV, Parquet or Arrow file at once; arguments and errors as ``read_batches``.

    A CSV file is read once, so that it may be a pipe.
    """
    schema = columns if isinstance(columns, TabularSchema) else _numbers(columns)
    where = f"{name}={str(path)!r}"
    content = _content(Path(path), where)
    if content.startswith((_PARQUET, _ARROW_FILE)):
        pieces = read_batches(path, schema, ignore=ignore, subject_column=subject_column, name=name)
        return _joined(list(pieces))
    _check_subject(subject_column, schema)
    subjects = None
    if subject_column is not None:
        subjects = tuple(read_names(content, subject_column, name=where))
        ignore = [*ignore, subject_column]
    rows = NamedRows(
        read_rows(content, schema, ignore=ignore, name=where), tuple(schema.column_names)
    )
    if subjects is not None and len(rows) != len(subjects):
        raise InvalidInput(
            f"{where}: has {len(rows)} rows and {len(subjects)} subjects; expected one subject "
            "for each row"
        )
    return Batch(rows, subjects)


def column_names(path: str | Path, *, name: str = "path") -> list[str]:
    """The names of the columns of a CSV, Parquet or Arrow IPC file.

    Raises:
        InvalidInput: the file cannot be read.
        MissingExtra: a Parquet or Arrow file, and pyarrow is not installed.
    """
    kind, where = file_kind(path, name=name), f"{name}={str(path)!r}"
    return csv_names(path, name=name) if kind == "csv" else _opened(Path(path), kind, where)[1]


def open_arrow(path: Path, *, name: str = "path") -> Any:
    """All columns of a Parquet or Arrow IPC file, as a pyarrow table.

    Raises:
        InvalidInput: the file cannot be read whole.
        MissingExtra: pyarrow is not installed.
    """
    where = f"{name}={str(path)!r}"
    file, _ = _opened(path, file_kind(path, name=name), where)
    with _in_plain_words(where, require("pyarrow", extra="arrow")):
        return file.read() if hasattr(file, "iter_batches") else file.read_all()


def _content(path: Path, where: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInput(
            f"{where}: cannot be read ({error.strerror}); expected a CSV, Parquet or Arrow file"
        ) from error


def _opened(path: Path, kind: str, where: str) -> tuple[Any, list[str]]:
    """A Parquet or Arrow file, and the names of its columns."""
    arrow = require("pyarrow", extra="arrow")
    with _in_plain_words(where, arrow):
        if kind == "parquet":
            file = require("pyarrow.parquet", extra="arrow").ParquetFile(path)
            return file, list(file.schema_arrow.names)
        file = require("pyarrow.ipc", extra="arrow").open_file(arrow.memory_map(str(path)))
        return file, list(file.schema.names)


def _check_subject(column: str | None, schema: TabularSchema) -> None:
    if column is not None and column.strip() in [name.strip() for name in schema.column_names]:
        raise InvalidInput(
            f"subject_column={column!r}: the bundle needs that column; expected one that is not "
            "read as data"
        )


def _numbers(columns: Sequence[str]) -> TabularSchema:
    """A schema that reads columns of numbers; their range is not used."""
    return TabularSchema.numbers(len(columns), 0.0, 1.0, names=columns)


def _arrow_batches(
    path: Path,
    kind: str,
    schema: TabularSchema,
    ignore: Sequence[str],
    subject_column: str | None,
    rows: int,
    name: str,
) -> Iterator[Batch]:
    where = f"{name}={str(path)!r}"
    arrow = require("pyarrow", extra="arrow")
    wanted = [*schema.column_names]
    file, names = _opened(path, kind, where)
    _check(names, wanted, ignore, subject_column, where)
    read = wanted if subject_column is None else [*wanted, subject_column]
    with _in_plain_words(where, arrow):
        if kind == "parquet":
            found = file.iter_batches(batch_size=rows, columns=read)
        else:
            found = (file.get_batch(place).select(read) for place in range(file.num_record_batches))
        for piece in found:
            table = arrow.Table.from_batches([piece])
            yield Batch(table.select(wanted), _subjects(table, subject_column, where))


def _check(
    names: list[str],
    wanted: list[str],
    ignore: Sequence[str],
    subject_column: str | None,
    where: str,
) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidInput(f"{where}: has more than one column {listed(twice)}")
    others = [*ignore] if subject_column is None else [*ignore, subject_column]
    absent = [name for name in others if name not in names]
    if absent:
        raise InvalidInput(f"{where}: has no column {listed(absent)}")
    read = [name for name in names if name in wanted or name not in others]
    check_columns(read, wanted, by="fit", name=where)


def _subjects(table: Any, column: str | None, where: str) -> tuple[str, ...] | None:
    if column is None:
        return None
    names = ["" if value is None else str(value) for value in table.column(column).to_pylist()]
    return tuple(subject_name(name, f"{where}: column {column!r}") for name in names)


@contextmanager
def _in_plain_words(where: str, arrow: Any) -> Iterator[None]:
    """Errors of pyarrow without their text, which may show cells."""
    try:
        yield
    except (arrow.ArrowException, OSError) as error:
        raise InvalidInput(
            f"{where}: cannot be read whole ({type(error).__name__}); write it again"
        ) from None


def _cut(pieces: Iterator[Batch], rows: int, skip: int, where: str) -> Iterator[Batch]:
    """The same rows in batches of ``rows``, without the first ``skip``."""
    waiting: list[Batch] = []
    held, left, seen = 0, skip, 0
    for piece in pieces:
        seen += len(piece)
        gone = min(left, len(piece))
        left -= gone
        kept = _part(piece, gone, len(piece))
        while len(kept):
            take = min(rows - held, len(kept))
            waiting.append(_part(kept, 0, take))
            held += take
            kept = _part(kept, take, len(kept))
            if held == rows:
                yield _joined(waiting)
                waiting, held = [], 0
    if waiting:
        yield _joined(waiting)
    if seen == 0:
        raise InvalidInput(f"{where}: has no rows")
    if left >= rows:
        raise InvalidInput(f"{where}: has {seen} rows, and {skip} of them were answered before")


def _part(batch: Batch, start: int, stop: int) -> Batch:
    if start == 0 and stop == len(batch):
        return batch
    rows = batch.rows[start:stop]
    return Batch(rows, None if batch.subjects is None else batch.subjects[start:stop])


def _joined(parts: list[Batch]) -> Batch:
    if len(parts) == 1:
        return parts[0]
    subjects = (
        None
        if parts[0].subjects is None
        else tuple(name for part in parts for name in part.subjects or ())
    )
    first = parts[0].rows
    if hasattr(first, "columns") and hasattr(first, "values"):
        values = np.concatenate([part.rows.values for part in parts])
        return Batch(type(first)(values, first.columns), subjects)
    arrow = require("pyarrow", extra="arrow")
    return Batch(arrow.concat_tables([part.rows for part in parts]), subjects)
