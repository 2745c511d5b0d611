"""Rows from and to files of every format: CSV, Parquet and Arrow IPC, by the names of columns.

Reading in batches takes constant memory. A batch is cut by the number of rows alone, so that the
same file gives the same batches again. No message shows a cell.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.checks import count, one_of
from reticent.core.errors import InvalidInput
from reticent.core.extras import require
from reticent.tables.attributes import Categorical
from reticent.tables.cells import instant_of_word, truth_of_word
from reticent.tables.files import (
    Faults,
    column_faults,
    csv_batches,
    csv_cells,
    csv_names,
    no_subject,
    read_names,
)
from reticent.tables.frames import NamedRows, listed, ordered_rows
from reticent.tables.schema import TabularSchema

LARGEST_BATCH = 100_000
"""Rows of a batch at most: with more, 10^7 rows of Parquet no longer fit into 1 GiB."""

FORMATS = ("parquet", "csv", "arrow")
"""Formats that tables are written in."""

READ = (
    ".csv, .tsv or .txt (comma, semicolon or tab; plain or .gz), .parquet, .arrow, .feather, .npy "
    "or .npz"
)
"""Files that rows are read from, for messages and help texts."""

_MARKS = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\x93NUMPY": "npy", b"PK\x03\x04": "npz"}
_TEXTS = ("", ".csv", ".tsv", ".txt")
_WORDS_OF_TRUTH = frozenset({"true", "false"})


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows that stand one after the other in a file.

    Attributes:
        rows: a data frame with the columns that were asked for.
        subjects: the subject of each row, or None where no column names one.
    """

    rows: Any
    subjects: tuple[str, ...] | None

    def __len__(self) -> int:
        return len(self.rows)


def file_kind(path: str | Path, *, name: str = "path") -> str:
    """Return the kind of a file by its first bytes: "parquet", "arrow", "npy", "npz" or "csv".

    Raises:
        InvalidInput: the file cannot be read, or its name ends as no text and no archive of arrays
            does.
    """
    try:
        with Path(path).open("rb") as file:
            start = file.read(8)
    except OSError as error:
        raise _unreadable(error, f"{name}={str(path)!r}") from error
    return _kind(start, Path(path), f"{name}={str(path)!r}")


def _kind(start: bytes, path: Path, where: str) -> str:
    found = next((kind for mark, kind in _MARKS.items() if start.startswith(mark)), "csv")
    ending = Path(path.stem if path.suffix.lower() == ".gz" else path).suffix.lower()
    expected = {"csv": _TEXTS, "npz": (".npz",)}.get(found)
    if expected is not None and ending not in expected:
        raise InvalidInput(f"{where}: cannot be read as rows; expected {READ}")
    return found


def _table_kind(kind: str, where: str) -> str:
    if kind in ("npy", "npz"):
        raise InvalidInput(
            f"{where}: holds arrays, without names of columns; expected a CSV, Parquet or Arrow "
            "file"
        )
    return kind


def _unreadable(error: OSError, where: str) -> InvalidInput:
    return InvalidInput(f"{where}: cannot be read ({error.strerror}); expected {READ}")


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
    """Yield the rows of a CSV, Parquet or Arrow IPC file, ``rows`` of them at a time.

    Args:
        path: a plain file.
        columns: the schema whose columns are read, or the names of columns of numbers.
        rows: the number of rows of a batch, from 1 to ``LARGEST_BATCH``. The last may be shorter.
        ignore: columns of the file that are not read, such as labels. Each must be there.
        subject_column: a column with the subject of each row, which ``columns`` does not name.
        skip: rows at the beginning that are left out.
        name: the caller's name of the file, used in messages.

    Yields:
        Batches. Columns are checked before the first, cells of CSV files when they are read.

    Raises:
        InvalidInput: the file cannot be read whole, or has no rows, or lacks a column, or has one
            that is neither named nor ignored.
        MissingExtra: the file is Parquet or Arrow, and pyarrow is not installed.
    """
    if count(rows, name="rows") > LARGEST_BATCH:
        raise InvalidInput(f"rows={rows}: expected at most {LARGEST_BATCH}")
    schema = columns if isinstance(columns, TabularSchema) else _numbers(columns)
    kind = _table_kind(file_kind(path, name=name), f"{name}={str(path)!r}")
    if kind == "csv":
        parts = csv_batches(path, schema, ignore=ignore, subject_column=subject_column, name=name)
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
    """Return all rows of a CSV, Parquet or Arrow file at once.

    Arguments and errors are those of ``read_batches``. A CSV file is read once, so that it may be a
    pipe.
    """
    schema = columns if isinstance(columns, TabularSchema) else _numbers(columns)
    where = f"{name}={str(path)!r}"
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise _unreadable(error, where) from error
    more: dict[str, Any] = {"ignore": ignore, "subject_column": subject_column}
    if _table_kind(_kind(content[:8], Path(path), where), where) == "csv":
        parts = csv_batches(content, schema, **more, name=where)
        return _joined([Batch(part, subjects) for part, subjects in parts])
    return _joined(list(read_batches(path, schema, **more, name=name)))


def read_frame(path: str | Path, *, name: str = "path") -> Any:
    """Return a data frame of all columns of a CSV, Parquet or Arrow file, without a schema.

    In a CSV file a column whose cells are all numbers holds numbers. Columns of true and false hold
    truth values, columns of ISO 8601 dates datetime values, and all others words. An empty cell is
    no value.

    Args:
        path: a plain file.
        name: the caller's name of the file, used in messages.

    Raises:
        InvalidInput: the file cannot be read whole, or has no rows.
        MissingExtra: the file is Parquet or Arrow, and pyarrow is not installed.
    """
    where = f"{name}={str(path)!r}"
    kind = _table_kind(file_kind(path, name=name), where)
    if kind != "csv":
        file, _ = _opened(Path(path), kind, where)
        with _in_plain_words(where, require("pyarrow", extra="arrow")):
            return file.read() if hasattr(file, "iter_batches") else file.read_all()
    names, cells, delimiter = csv_cells(path, name=name)
    repeated = sorted({column for column in names if names.count(column) > 1})
    if repeated:
        raise InvalidInput(f"{where}: has more than one column {listed(repeated)}")
    if not cells:
        raise InvalidInput(f"{where}: has a header line and no rows")
    table = np.empty((len(cells), len(names)), dtype=object)
    for place, column in enumerate(zip(*cells, strict=True)):
        table[:, place] = _values([cell.strip() for cell in column], comma=delimiter != ",")
    return NamedRows(table, tuple(names))


def names_in(path: str | Path, column: str, *, name: str = "path") -> list[str]:
    """Return the names in one column of a CSV, Parquet or Arrow file, one for each row.

    Raises:
        InvalidInput: the file cannot be read whole, has no rows, lacks the column, or holds a cell
            there that is no name for ``Scope``. The message names the rows, never their cells.
        MissingExtra: the file is Parquet or Arrow, and pyarrow is not installed.
    """
    where = f"{name}={str(path)!r}"
    kind = _table_kind(file_kind(path, name=name), where)
    if kind == "csv":
        return read_names(path, column, name=name)
    file, names = _opened(Path(path), kind, where)
    faults = column_faults([each for each in names if each == column], (), (), column)
    if faults:
        raise InvalidInput(f"{where}: {faults[0]}")
    with _in_plain_words(where, require("pyarrow", extra="arrow")):
        read = file.read if hasattr(file, "iter_batches") else file.read_all
        found = _subjects(read().select([column]), column, where, 1)
    if not found:
        raise InvalidInput(f"{where}: has no rows")
    return list(found)


def column_names(path: str | Path, *, name: str = "path") -> list[str]:
    """Return the names of the columns of a CSV, Parquet or Arrow IPC file.

    Raises:
        InvalidInput: the file cannot be read.
        MissingExtra: the file is Parquet or Arrow, and pyarrow is not installed.
    """
    where = f"{name}={str(path)!r}"
    kind = _table_kind(file_kind(path, name=name), where)
    return csv_names(path, name=name) if kind == "csv" else _opened(Path(path), kind, where)[1]


def check_format(format: str) -> None:
    """Raise if tables cannot be written in a format. To be called before anything is paid for.

    Raises:
        UnknownName: the format is none of ``FORMATS``.
        MissingExtra: pyarrow is not installed, for "parquet" and "arrow".
    """
    if one_of(format, FORMATS, name="format") != "csv":
        require("pyarrow", extra="arrow")


def encoded_columns(columns: Mapping[str, Any], format: str) -> bytes:
    """Return a table as the bytes of a file.

    Args:
        columns: names, and for each an array or list of n values. NaN and None are no value in CSV.
        format: one of ``FORMATS``.

    Raises:
        UnknownName, MissingExtra: ``check_format`` raises it.
    """
    check_format(format)
    if format == "csv":
        return _csv(columns)
    buffer = io.BytesIO()
    table = require("pyarrow", extra="arrow").table(dict(columns))
    if format == "parquet":
        require("pyarrow.parquet", extra="arrow").write_table(table, buffer)
    else:
        with require("pyarrow.ipc", extra="arrow").new_file(buffer, table.schema) as writer:
            writer.write_table(table)
    return buffer.getvalue()


def _csv(columns: Mapping[str, Any]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    lists = [
        column.tolist() if isinstance(column, np.ndarray) else column for column in columns.values()
    ]
    plain = [["" if cell is None or cell != cell else cell for cell in column] for column in lists]
    writer.writerows(zip(*plain, strict=True))
    return text.getvalue().encode()


def _opened(path: Path, kind: str, where: str, words: Sequence[str] = ()) -> tuple[Any, list[str]]:
    """Return a Parquet or Arrow file, and the names of its columns.

    Of Parquet, columns of ``words`` come as codes.
    """
    arrow = require("pyarrow", extra="arrow")
    with _in_plain_words(where, arrow):
        if kind == "parquet":
            # Without read-ahead: it holds what was read until the file ends.
            file = require("pyarrow.parquet", extra="arrow").ParquetFile(
                path, pre_buffer=False, read_dictionary=list(words)
            )
            return file, list(file.schema_arrow.names)
        file = require("pyarrow.ipc", extra="arrow").open_file(arrow.memory_map(str(path)))
        return file, list(file.schema.names)


def _numbers(columns: Sequence[str]) -> TabularSchema:
    """Return a schema that reads columns of numbers. Their range is not used."""
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
    words = [each.name for each in schema.attributes if isinstance(each, Categorical)]
    file, names = _opened(path, kind, where, words)
    faults = column_faults(names, wanted, ignore, subject_column, schema.left_out)
    if faults:
        raise InvalidInput(f"{where}: {'; '.join(faults)}")
    read = wanted if subject_column is None else [*wanted, subject_column]
    with _in_plain_words(where, arrow):
        if kind == "parquet":
            found = file.iter_batches(batch_size=rows, columns=read)
        else:
            found = (file.get_batch(place).select(read) for place in range(file.num_record_batches))
        first = 1
        for piece in found:
            table = arrow.Table.from_batches([piece])
            yield Batch(table.select(wanted), _subjects(table, subject_column, where, first))
            first += len(table)


def _subjects(table: Any, column: str | None, where: str, first: int) -> tuple[str, ...] | None:
    """Return the subject of each row. ``first`` is the number of the first row in its file."""
    if column is None:
        return None
    found = table.column(column).to_pylist()
    names = tuple("" if value is None else str(value).strip() for value in found)
    faults = Faults(where, unit="row")
    for place, name in enumerate(names, first):
        fault = no_subject(name)
        if fault:
            faults.add(f", column {column!r}: {fault}", place)
    faults.check()
    return names


def _values(words: list[str], *, comma: bool) -> npt.NDArray[np.object_]:
    """Return the cells of a column in the type that fits all of them, and None where a cell is
    empty.

    With ``comma`` numbers may have a decimal comma.
    """
    found = np.empty(len(words), dtype=object)
    found[:] = words
    points = words
    if comma and not any("." in word for word in words):
        points = [word.replace(",", ".") for word in words]
    for read, cells in ((_number, points), (_truth, words), (_time, words)):
        values = [read(cell) if cell else None for cell in cells]
        if any(words) and all(
            value is not None for value, word in zip(values, words, strict=True) if word
        ):
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


@contextmanager
def _in_plain_words(where: str, arrow: Any) -> Iterator[None]:
    """Raise errors of pyarrow without their text, which may show cells."""
    try:
        yield
    except (arrow.ArrowException, OSError) as error:
        raise InvalidInput(
            f"{where}: cannot be read whole ({type(error).__name__}); write it again"
        ) from None


def _cut(pieces: Iterator[Batch], rows: int, skip: int, where: str) -> Iterator[Batch]:
    """Yield the same rows in batches of ``rows``, without the first ``skip``."""
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
    of_cells = [part.rows for part in parts if isinstance(part.rows, NamedRows)]
    if of_cells:
        names = of_cells[0].columns
        values = np.concatenate([ordered_rows(part.rows, names) for part in parts])
        return Batch(NamedRows(values, names), subjects)
    arrow = require("pyarrow", extra="arrow")
    return Batch(arrow.concat_tables([part.rows for part in parts]), subjects)
