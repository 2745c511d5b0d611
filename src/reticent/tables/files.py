"""Rows of a table from a CSV file, its columns matched to a public schema by name. No message shows
a cell.

A file without a header line has a record where the names should be, so names that the schema
does not know are shown only once all of the schema's own were found.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.errors import InvalidInput
from reticent.core.files import LimitedReader, UnpacksTooFar
from reticent.core.scopes import LONGEST_NAME
from reticent.tables.attributes import (
    Categorical,
    Hashed,
    Instant,
    Numeric,
    OneHot,
    Ordered,
    Truth,
)
from reticent.tables.cells import word_of
from reticent.tables.frames import NamedRows, listed
from reticent.tables.schema import Array, TabularSchema

_GZIP = b"\x1f\x8b"
_BLOCK = 4096  # lines that are held as text at a time
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)


def read_rows(
    path: str | Path | bytes,
    schema: TabularSchema,
    *,
    ignore: Sequence[str] = (),
    name: str = "path",
) -> npt.NDArray[Any]:
    """The rows of a CSV file with a header line, as ``schema.encode`` takes them, in the order of
    the file.

    Columns may stand in any order. Blanks around cells and names do not count. An empty cell is a
    missing value: the code that a numeric column has for it, the category "" or the one for all
    others; it is refused where the schema has neither. Numbers outside their public range are left
    as they are; encoding moves them to its end.

    Args:
        path: comma-separated UTF-8 text, plain or gzipped, quoted as in RFC 4180; or the content of
            such a file.
        schema: names the columns.
        ignore: names of columns of the file that are not read, such as labels; each must be there.
        name: what the caller calls the file; used in messages.

    Returns:
        Shape (n, schema.columns): float64 where every column holds numbers, else objects (floats
        and words).

    Raises:
        InvalidInput: the file cannot be read whole, has no header or no rows, lacks a column or
            has one too many or twice, has a line with another number of cells, or a cell that
            the schema does not allow. The message names the line and the column, never what
            stands there.
    """
    where = _place(path, name)
    with _lines(path, where) as lines:
        header, first = _header(lines, where)
        reader = _Reader(schema, _order(header, schema, ignore, where), len(header), where)
        parts = list(reader.blocks(lines, first))
    if not parts:
        raise InvalidInput(f"{where}: has a header line and no rows")
    return np.concatenate(parts)


def read_names(path: str | Path | bytes, column: str, *, name: str = "path") -> list[str]:
    """The names in one column of a CSV file with a header line, one for each row that ``read_rows``
    reads: whose row it is.

    Args:
        path: as for ``read_rows``.
        column: which column; blanks around it, and around the names, do not count.
        name: what the caller calls the file; used in messages.

    Returns:
        One name for each row, as ``Scope`` takes them.

    Raises:
        InvalidInput: the file cannot be read whole, has no header or no rows, lacks the column
            or has it twice, has a line with another number of cells, or a cell that is empty or
            no name. The message names the line, never what stands there.
    """
    where = _place(path, name)
    names = list(_names(path, column.strip(), where))
    if not names:
        raise InvalidInput(f"{where}: has a header line and no rows")
    return names


def csv_batches(
    path: str | Path,
    schema: TabularSchema,
    *,
    ignore: Sequence[str] = (),
    subject_column: str | None = None,
    name: str = "path",
) -> Iterator[tuple[NamedRows, tuple[str, ...] | None]]:
    """What ``read_rows`` and ``read_names`` read, some rows at a time, in constant memory.

    Args:
        path, schema, ignore, name: as for ``read_rows``; ``ignore`` includes the next.
        subject_column: as for ``read_names``; None for none.

    Yields:
        Rows with the schema's column names, and for each row whose it is.

    Raises:
        InvalidInput: as ``read_rows`` and ``read_names``, when the line is reached.
    """
    where = _place(path, name)
    columns = tuple(schema.column_names)
    subjects = None if subject_column is None else _names(path, subject_column.strip(), where)
    with _lines(path, where) as lines:
        header, first = _header(lines, where)
        reader = _Reader(schema, _order(header, schema, ignore, where), len(header), where)
        for part in reader.blocks(lines, first):
            whose = None if subjects is None else tuple(islice(subjects, len(part)))
            yield NamedRows(part, columns), whose


def csv_cells(path: str | Path, *, name: str = "path") -> list[list[str]]:
    """The cells of every line of a CSV file but the first, as they stand there.

    Raises:
        InvalidInput: the file cannot be read whole, or a line has another number of cells than the
            first. The message names the line.
    """
    where, found = _place(path, name), []
    with _lines(path, where) as lines:
        header, first = _header(lines, where)
        while block := list(islice(lines, _BLOCK)):
            rows, places, read = _records(block, lines, first, where)
            first += read
            for row, line in zip(rows, places, strict=True):
                if row and len(row) != len(header):
                    raise _ragged(f"{where}: line {line}", len(row), len(header))
                found += [row] if row else []
    return found


def csv_names(path: str | Path | bytes, *, name: str = "path") -> list[str]:
    """The names in the first line of a CSV file.

    Raises:
        InvalidInput: the file cannot be read, or is empty.
    """
    where = _place(path, name)
    with _lines(path, where) as lines:
        return _header(lines, where)[0]


def subject_name(cell: str, where: str) -> str:
    """Whose a row is, as a ledger's scope takes it.

    Raises:
        InvalidInput: empty, too long or not printable; what it is, is not shown.
    """
    return _name(cell.strip(), where)


def _names(path: str | Path | bytes, column: str, where: str) -> Iterator[str]:
    with _lines(path, where) as lines:
        header, first = _header(lines, where)
        if header.count(column) != 1:
            raise InvalidInput(
                f"{where}: expected one column {column!r} in its first line, got "
                f"{header.count(column)}"
            )
        at, blank = header.index(column), 0
        while block := list(islice(lines, _BLOCK)):
            rows, places, read = _records(block, lines, first, where)
            first += read
            for row, line in zip(rows, places, strict=True):
                if not row:
                    blank = blank or line
                    continue
                if blank:
                    raise _blank_before_others(where, blank)
                if len(row) != len(header):
                    raise _ragged(f"{where}: line {line}", len(row), len(header))
                yield subject_name(row[at], f"{where}: line {line}, column {column!r}")


def rows_of_words(
    words: npt.NDArray[np.str_], schema: TabularSchema, *, name: str
) -> npt.NDArray[Any]:
    """Rows that are all written as words, read as ``read_rows`` reads the cells of a file.

    Args:
        words: shape (n, schema.columns), in the schema's order.
        schema: says which columns hold numbers.
        name: what the caller calls the array; used in messages.

    Raises:
        InvalidInput: another shape, no rows, or a word that the schema does not allow. The
            message names its row, counted from 1.
    """
    if words.ndim != 2 or words.shape[1] != schema.columns or len(words) == 0:
        raise InvalidInput(
            f"{name}: expected shape (n, {schema.columns}) as in the schema, got "
            f"shape={words.shape}"
        )
    reader = _Reader(schema, tuple(range(schema.columns)), schema.columns, name, unit="row")
    return reader.table(words.tolist(), range(1, len(words) + 1))


@dataclass(frozen=True)
class _Numbers:
    """Reads the cells of a column of numbers; ``missing`` stands for an empty one."""

    name: str
    missing: float | None

    def read(self, cells: Sequence[str], places: Sequence[int], where: str) -> Array:
        if self.missing is not None:
            filler = str(float(self.missing))
            cells = [cell or filler for cell in cells]
        try:
            values = np.fromiter(map(float, cells), dtype=np.float64, count=len(cells))
        except ValueError:
            pass
        else:
            text = "".join(cells)
            # Python reads 1_000 and the digits of every script; a table that holds them was not
            # meant for it.
            if np.isfinite(values).all() and text.isascii() and "_" not in text:
                return values
        return np.array(
            [
                self._number(cell.strip(), f"{where} {at}")
                for cell, at in zip(cells, places, strict=True)
            ]
        )

    def _number(self, cell: str, where: str) -> float:
        if not cell and self.missing is not None:
            return float(self.missing)
        if not cell:
            raise InvalidInput(
                f"{where}, column {self.name!r}: is empty, and the schema has no code for a "
                "missing value"
            )
        if _NOT_FINITE.fullmatch(cell):
            raise InvalidInput(
                f"{where}, column {self.name!r}: is NaN or infinity; expected a finite number"
            )
        if not _NUMBER.fullmatch(cell):
            raise InvalidInput(f"{where}, column {self.name!r}: cannot be read as a number")
        if not math.isfinite(float(cell)):
            raise InvalidInput(f"{where}, column {self.name!r}: is too large for a number")
        return float(cell)


@dataclass(frozen=True)
class _Words:
    """Reads the cells of a column of categories."""

    column: Categorical

    @cached_property
    def _known(self) -> dict[str, str]:
        return {word_of(value).strip(): word_of(value) for value in self.column.categories}

    @cached_property
    def _numeric(self) -> bool:
        return any(not isinstance(value, str) for value in self.column.categories)

    def read(self, cells: Sequence[str], places: Sequence[int], where: str) -> list[str]:
        found = {cell: self._category(cell.strip()) for cell in set(cells)}
        words = [found[cell] for cell in cells]
        if None in words:
            wrong = words.index(None)
            what = (
                "is not among its public categories"
                if cells[wrong].strip()
                else "is empty, which is not among its categories"
            )
            raise InvalidInput(
                f"{where} {places[wrong]}, column {self.column.name!r}: {what}; correct the "
                "file or the schema"
            )
        return [word for word in words if word is not None]

    def _category(self, cell: str) -> str | None:
        """The category that ``cell`` names, or None."""
        if cell not in self._known and self._numeric and _NUMBER.fullmatch(cell):
            cell = word_of(float(cell))
        return self._known.get(cell, self._else(empty=not cell))

    def _else(self, *, empty: bool) -> str | None:
        """The category of a cell that names none."""
        other = self.column.other
        if empty and self.column.missing is not None:
            other = self.column.missing
        return None if other is None else word_of(other)


@dataclass(frozen=True)
class _Cells:
    """Reads the cells of a column of dates, truth values, ordered or hashed words."""

    column: Instant | Truth | Ordered | Hashed

    def read(self, cells: Sequence[str], places: Sequence[int], where: str) -> list[Any]:
        found = {cell: self.column.of_word(cell.strip()) for cell in set(cells)}
        values = [found[cell] for cell in cells]
        if None in found.values():
            wrong = values.index(None)
            what = "cannot be read as" if cells[wrong].strip() else "is empty; expected"
            raise InvalidInput(
                f"{where} {places[wrong]}, column {self.column.name!r}: {what} a value of kind "
                f"{self.column.kind!r}; correct the file or the schema"
            )
        return values


@dataclass(frozen=True)
class _Reader:
    """Lines of text as rows.

    Attributes:
        schema: what the cells are.
        order: for each column of the schema, its place in a line.
        width: cells in a line.
        where: the file, as messages name it.
        unit: what messages count.
    """

    schema: TabularSchema
    order: tuple[int, ...]
    width: int
    where: str
    unit: str = "line"

    @cached_property
    def _columns(self) -> tuple[_Numbers | _Words | _Cells, ...]:
        columns: list[_Numbers | _Words | _Cells] = []
        for attribute in self.schema.attributes:
            if isinstance(attribute, Categorical):
                columns.append(_Words(attribute))
            elif isinstance(attribute, Numeric):
                columns.append(_Numbers(attribute.name, attribute.missing))
            elif isinstance(attribute, OneHot):
                columns += [_Numbers(name, None) for name in attribute.names]
            else:
                columns.append(_Cells(attribute))
        return tuple(columns)

    @cached_property
    def _all_numbers(self) -> bool:
        return all(isinstance(column, _Numbers) for column in self._columns)

    def blocks(self, lines: Iterator[str], first: int) -> Iterator[npt.NDArray[Any]]:
        """Tables of up to ``_BLOCK`` lines; ``first`` is the number of the first line. Blank
        lines may stand at the end.
        """
        blank = 0
        while block := list(islice(lines, _BLOCK)):
            numbers = self._plain_numbers(block) if self._all_numbers else None
            if numbers is not None:
                places: Sequence[int] = range(first, first + len(block))
                self._check_blank(blank, places)
                self._check_one_hot(numbers, places)
                first += len(block)
                yield numbers
                continue
            rows, places, read = _records(block, lines, first, self.where)
            first += read
            kept = [at for at, row in enumerate(rows) if row]
            blank = blank or next(
                (place for place, row in zip(places, rows, strict=True) if not row), 0
            )
            self._check_blank(blank, [places[at] for at in kept])
            if kept:
                yield self.table([rows[at] for at in kept], [places[at] for at in kept])

    def table(self, rows: Sequence[Sequence[str]], places: Sequence[int]) -> npt.NDArray[Any]:
        """Checked rows, shape (n, columns)."""
        for row, at in zip(rows, places, strict=True):
            if len(row) != self.width:
                raise _ragged(f"{self.where}: {self.unit} {at}", len(row), self.width)
        cells = list(zip(*rows, strict=True))
        where = f"{self.where}: {self.unit}"
        table = np.empty(
            (len(rows), len(self.order)), dtype=np.float64 if self._all_numbers else object
        )
        for index, (column, place) in enumerate(zip(self._columns, self.order, strict=True)):
            table[:, index] = column.read(cells[place], places, where)
        self._check_one_hot(table, places)
        return table

    def _plain_numbers(self, block: list[str]) -> Array | None:
        """Rows of a block that holds nothing but numbers, several times faster; None where
        anything asks for a closer look.
        """
        text = "".join(block)
        if self.width < 2 or not text.isascii() or '"' in text or "\0" in text:
            return None
        if any(line.count(",") != self.width - 1 for line in block):
            return None
        try:
            values = np.loadtxt(block, delimiter=",", comments=None, usecols=self.order, ndmin=2)
        except ValueError:
            return None
        return values if len(values) == len(block) and np.isfinite(values).all() else None

    def _check_blank(self, blank: int, later: Iterable[int]) -> None:
        if blank and any(place > blank for place in later):
            raise _blank_before_others(self.where, blank)

    def _check_one_hot(self, table: npt.NDArray[Any], places: Sequence[int]) -> None:
        start = 0
        for attribute in self.schema.attributes:
            columns = slice(start, start + attribute.columns)
            start += attribute.columns
            if isinstance(attribute, OneHot):
                values = table[:, columns].astype(np.float64)
                right = ((values == 0) | (values == 1)).all(axis=1) & (values.sum(axis=1) == 1)
                if not right.all():
                    at = places[int(right.argmin())]
                    raise InvalidInput(
                        f"{self.where}: {self.unit} {at}, attribute {attribute.name!r}: "
                        "expected one 1 in its "
                        f"{attribute.columns} columns, and 0 in the others"
                    )


def _place(path: str | Path | bytes, name: str) -> str:
    return name if isinstance(path, bytes) else f"{name}={str(path)!r}"


@contextmanager
def _lines(path: str | Path | bytes, where: str) -> Iterator[Iterator[str]]:
    """The lines of a file, or of its content; what keeps them from being read is said in plain
    words.
    """
    try:
        with (
            io.BufferedReader(io.BytesIO(path))
            if isinstance(path, bytes)
            else Path(path).open("rb") as raw
        ):
            packed = raw.peek(2)[:2] == _GZIP
            unpacked: Any = (
                io.BufferedReader(LimitedReader(gzip.GzipFile(fileobj=raw)), 2**18)
                if packed
                else raw
            )
            with io.TextIOWrapper(unpacked, encoding="utf-8-sig", newline="") as lines:
                yield lines
    except UnpacksTooFar as error:
        raise InvalidInput(f"{where}: {error}; unpack it, and pass the plain file") from error
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InvalidInput(f"{where}: damaged or cut short gzip file; write it again") from None
    except UnicodeDecodeError:
        raise InvalidInput(
            f"{where}: is not UTF-8 text; save it as comma-separated UTF-8"
        ) from None
    except OSError as error:
        raise InvalidInput(
            f"{where}: cannot be read ({error.strerror}); expected a CSV file"
        ) from error


def _name(cell: str, where: str) -> str:
    if not cell:
        raise InvalidInput(f"{where}: is empty; expected a name")
    if len(cell) > LONGEST_NAME or not cell.isprintable():
        raise InvalidInput(
            f"{where}: is no name; expected up to {LONGEST_NAME} printable characters"
        )
    return cell


def _ragged(where: str, cells: int, expected: int) -> InvalidInput:
    return InvalidInput(f"{where} has {cells} cells, expected {expected} as in the header")


def _blank_before_others(where: str, line: int) -> InvalidInput:
    return InvalidInput(
        f"{where}: line {line} is blank, and lines follow it; take it out, or fill it in"
    )


def _records(
    block: Sequence[str], lines: Iterator[str], first: int, where: str
) -> tuple[list[list[str]], list[int], int]:
    """Cells of every record that starts in ``block``, the lines that they start in, and how many
    lines were read.

    A quoted cell may reach into ``lines``, which follow the block. A blank line has no cells.
    """
    reader = csv.reader(chain(block, lines), strict=True, skipinitialspace=True)
    rows: list[list[str]] = []
    places: list[int] = []
    while reader.line_num < len(block):
        places.append(first + reader.line_num)
        line = block[reader.line_num]
        try:
            row = next(reader)
        except csv.Error:
            raise InvalidInput(
                f"{where}: line {places[-1]} cannot be read as comma-separated text; look at "
                "its quotation marks"
            ) from None
        rows.append(row if line.strip() else [])
    return rows, places, reader.line_num


def _header(lines: Iterator[str], where: str) -> tuple[list[str], int]:
    """The names in the header line, and the number of the line after it."""
    block = list(islice(lines, 1))
    if not block:
        raise InvalidInput(
            f"{where}: is empty; expected a header line with the names of the columns"
        )
    rows, _, read = _records(block, lines, 1, where)
    return [cell.strip() for cell in rows[0]], 1 + read


def _order(
    header: Sequence[str], schema: TabularSchema, ignore: Sequence[str], where: str
) -> tuple[int, ...]:
    """For each column of the schema, its place in the header."""
    wanted = [name.strip() for name in schema.column_names]
    if len(set(wanted)) < len(wanted):
        raise InvalidInput(
            "schema: names a column twice, so that columns cannot be told apart by name; pass "
            "an array instead"
        )
    ignored = {name.strip() for name in ignore}
    found = Counter(header)
    missing = [name for name in wanted if name not in found]
    if missing:
        raise InvalidInput(
            f"{where}: its first line names {len(wanted) - len(missing)} of {len(wanted)} "
            f"columns, and not {listed(missing)}; "
            "expected a header line, comma-separated, with the names in the schema"
        )
    both = sorted(ignored.intersection(wanted))
    if both:
        raise InvalidInput(
            f"{where}: the schema needs {listed(both)}; ignore only columns that it does not name"
        )
    absent = sorted(ignored.difference(found))
    if absent:
        raise InvalidInput(f"{where}: has no column {listed(absent)} to ignore")
    extra = [name for name in found if name not in ignored and name not in wanted]
    if extra:
        raise InvalidInput(
            f"{where}: the schema does not name {listed(extra)}; take such columns out, or "
            "ignore each by name "
            "(ignore=[...], --ignore-column)"
        )
    repeated = [name for name, count in found.items() if count > 1]
    if repeated:
        raise InvalidInput(
            f"{where}: has more than one column {listed(repeated)}; every name may stand there once"
        )
    places = {name: place for place, name in enumerate(header)}
    return tuple(places[name] for name in wanted)
