"""Rows of a table from a CSV file, its columns matched to a public schema by name.

Cells are separated by commas, semicolons or tabs, whichever the first line has most of. Between
semicolons and tabs a number may have a decimal comma.

A file is read to its end before it is refused, and one message lists all faults with their lines.
No message shows a cell. A file without a header line has a record where the names should be, so
names that the schema does not know are shown only once all of the schema's own were found.
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
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain, compress, islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.errors import InvalidInput, MissingExtra
from reticent.core.extras import require
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
from reticent.tables.frames import NamedRows, listed, ordered_rows
from reticent.tables.schema import FAULTS_SHOWN, TabularSchema

_GZIP = b"\x1f\x8b"
_BLOCK = 512  # lines at a time, so few that Python does not look for dead ones among them
_AT_ONCE = 2**20  # characters that pyarrow reads at once
_DELIMITERS = (",", ";", "\t")
_QUOTED = re.compile(r'"[^"]*("|$)')
_LINES_SHOWN = 5
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)


def read_rows(
    path: str | Path | bytes,
    schema: TabularSchema,
    *,
    ignore: Sequence[str] = (),
    name: str = "path",
) -> npt.NDArray[Any]:
    """Return the rows of a CSV file with a header line, as ``schema.encode`` takes them, in the
    order of the file.

    Columns may stand in any order. Blanks around cells and names do not count. An empty cell is a
    missing value: the code that a numeric column has for it, the category "" or the one for all
    others. It is refused where the schema has neither. Numbers outside their public range are left
    as they are, and encoding moves them to its end.

    Args:
        path: UTF-8 text separated by commas, semicolons or tabs, plain or gzipped, quoted as in RFC
            4180, or the content of such a file.
        schema: the schema that names the columns.
        ignore: names of columns of the file that are not read, such as labels. Each must be there.
        name: the caller's name of the file, used in messages.

    Returns:
        Shape (n, schema.columns): float64 where every column holds numbers, else objects (floats
        and words).

    Raises:
        InvalidInput: the file cannot be read whole, has no header or no rows, or lacks columns or
            has some too many or twice. Or it has lines with another number of cells, or cells that
            the schema does not allow. The message names all lines and columns that are wrong, a few
            lines of each kind, never their cells.
    """
    parts = csv_batches(path, schema, ignore=ignore, name=name)
    return np.concatenate([ordered_rows(part, schema.column_names) for part, _ in parts])


def read_names(path: str | Path | bytes, column: str, *, name: str = "path") -> list[str]:
    """Return the names in one column of a CSV file with a header line, the subject of each row that
    ``read_rows`` reads.

    Args:
        path: the argument of ``read_rows``.
        column: the name of the column. Blanks around it, and around the names, do not count.
        name: the caller's name of the file, used in messages.

    Returns:
        One name for each row, as ``Scope`` takes them.

    Raises:
        InvalidInput: the file cannot be read whole, has no header or no rows, or lacks the column
            or has it twice. Or it has a line with another number of cells, or a cell that is empty
            or no name. The message names the line, never its cells.
    """
    where = _place(path, name)
    parts = _parts(path, where, None, (), column)
    return list(chain.from_iterable(whose or () for _, whose in parts))


def csv_batches(
    path: str | Path | bytes,
    schema: TabularSchema,
    *,
    ignore: Sequence[str] = (),
    subject_column: str | None = None,
    name: str = "path",
) -> Iterator[tuple[Any, tuple[str, ...] | None]]:
    """Yield the rows of ``read_rows`` and the names of ``read_names``, some at a time, from one
    pass over the file in constant memory.

    Args:
        path, schema, name: the arguments of ``read_rows``.
        ignore: the argument of ``read_rows``, without ``subject_column``.
        subject_column: the ``column`` of ``read_names``, or None.

    Yields:
        A data frame with the schema's column names, and the subject of each row.

    Raises:
        InvalidInput: ``read_rows`` or ``read_names`` would raise it. One message holds all faults.
            Columns are checked at once, cells when their line is reached. From a fault on, the rest
            of the file is read for further faults.
    """
    columns = tuple(schema.column_names)
    for part, whose in _parts(path, _place(path, name), schema, ignore, subject_column):
        yield NamedRows(part, columns) if isinstance(part, np.ndarray) else part, whose


def csv_cells(path: str | Path, *, name: str = "path") -> tuple[list[str], list[list[str]], str]:
    """Return the first line of a CSV file, the cells of all others, and the separator of cells.

    Raises:
        InvalidInput: the file cannot be read whole, or lines have another number of cells than the
            first. The message names the lines.
    """
    where = _place(path, name)
    found: list[list[str]] = []
    with _lines(path, where) as lines:
        head = _Head.read(lines, where)
        reader = _Reader(head, where)
        for rows, places in reader.records(lines):
            assert isinstance(rows, list)  # no column is read as numbers
            found += reader.whole(rows, places)[0]
        reader.faults.check()
    return list(head.names), found, head.delimiter


def csv_names(path: str | Path | bytes, *, name: str = "path") -> list[str]:
    """Return the names in the first line of a CSV file.

    Raises:
        InvalidInput: the file cannot be read, or is empty.
    """
    where = _place(path, name)
    with _lines(path, where) as lines:
        return list(_Head.read(lines, where).names)


def no_subject(name: str) -> str:
    """Return the reason that keeps ``name`` from being a subject of a ledger's scope, or "".

    The name is not shown.
    """
    if not name:
        return "is empty; expected a name"
    if len(name) > LONGEST_NAME or not name.isprintable():
        return f"is no name; expected up to {LONGEST_NAME} printable characters"
    return ""


def column_faults(
    found: Sequence[str],
    wanted: Sequence[str],
    ignored: Iterable[str],
    subject: str | None,
    unread: Iterable[str] = (),
) -> list[str]:
    """Return all faults of the columns of a file.

    Args:
        found: names of its columns.
        wanted: columns that are read as data.
        ignored: columns that are not read. Each must be there.
        subject: the column with the subject of each row, or None.
        unread: columns that may be there and are not read.

    Raises:
        InvalidInput: ``wanted`` names a column twice.
    """
    if len(set(wanted)) < len(wanted):
        raise InvalidInput(
            "schema: names a column twice, so that columns cannot be told apart by name; pass "
            "an array instead"
        )
    counts, left_out, faults = Counter(found), set(ignored), []
    missing = [name for name in wanted if name not in counts]
    if missing:
        faults.append(
            f"names {len(wanted) - len(missing)} of {len(wanted)} columns, and not "
            f"{listed(missing)}; expected the names in the schema, in the first line of a CSV file"
        )
    if subject is not None and subject in wanted:
        faults.append(f"{subject!r} is read as data, and cannot say whose each row is")
    elif subject is not None and counts[subject] != 1:
        faults.append(f"expected one column {subject!r}, got {counts[subject]}")
    both = sorted(left_out.intersection(wanted))
    if both:
        faults.append(f"the schema needs {listed(both)}; ignore only columns that it does not name")
    absent = sorted(left_out.difference(counts))
    if absent:
        faults.append(f"has no column {listed(absent)} to ignore")
    if missing:  # other names may be cells of a file without a header line
        return faults
    known = {*wanted, *left_out, *unread, subject}
    extra = [name for name in counts if name not in known]
    if extra:
        faults.append(
            f"the schema does not name {listed(extra)}; take such columns out, or ignore each by "
            "name (ignore=[...], --ignore-column)"
        )
    repeated = [name for name, count in counts.items() if count > 1 and name != subject]
    if repeated:
        faults.append(
            f"has more than one column {listed(repeated)}; every name may stand there once"
        )
    return faults


def _parts(
    path: str | Path | bytes,
    where: str,
    schema: TabularSchema | None,
    ignore: Sequence[str],
    subject_column: str | None,
) -> Iterator[tuple[Any, tuple[str, ...] | None]]:
    """Yield blocks of rows, and the subject of each row. Without a schema all other columns are
    left.
    """
    with _lines(path, where) as lines:
        head = _Head.read(lines, where)
        order, subject = _order(head.names, schema, ignore, subject_column, where)
        empty = True
        for part in _Reader(head, where, schema, order, subject).blocks(lines):
            empty = False
            yield part
    if empty:
        raise InvalidInput(f"{where}: has a header line and no rows")


def rows_of_words(
    words: npt.NDArray[np.str_], schema: TabularSchema, *, name: str
) -> npt.NDArray[Any]:
    """Return rows that are all written as words, read as ``read_rows`` reads the cells of a file.

    Args:
        words: shape (n, schema.columns), in the schema's order.
        schema: the schema that says which columns hold numbers.
        name: the caller's name of the array, used in messages.

    Raises:
        InvalidInput: ``words`` has another shape or no rows, or a word that the schema does not
            allow. The message names its row, counted from 1.
    """
    if words.ndim != 2 or words.shape[1] != schema.columns or len(words) == 0:
        raise InvalidInput(
            f"{name}: expected shape (n, {schema.columns}) as in the schema, got "
            f"shape={words.shape}"
        )
    head = _Head(tuple(schema.column_names), ",", 1)
    reader = _Reader(head, name, schema, tuple(range(schema.columns)), unit="row")
    table = reader.table(words.tolist(), range(1, len(words) + 1))
    reader.faults.check()
    return table


@dataclass
class Faults:
    """A collection of a file's faults for one message.

    Attributes:
        where: the file, as messages name it.
        unit: the unit that is counted: lines or rows.
        found: for each fault the first places that have it, and how many have it.
    """

    where: str
    unit: str = "line"
    found: dict[str, tuple[list[int], int]] = field(default_factory=dict)

    def add(self, fault: str, place: int) -> None:
        """Note a fault. ``fault`` goes on after "line 7"."""
        places, count = self.found.setdefault(fault, ([], 0))
        if count < _LINES_SHOWN:
            places.append(place)
        self.found[fault] = (places, count + 1)

    def check(self) -> None:
        """Raise InvalidInput with all that was found, if anything was."""
        if self.found:
            raise self.error()

    def error(self) -> InvalidInput:
        """Return the error that lists all faults."""
        said = [
            f"{self._places(*at)}{fault}" for fault, at in list(self.found.items())[:FAULTS_SHOWN]
        ]
        more = len(self.found) - len(said)
        rest = f"; and {more} other faults" if more else ""
        return InvalidInput(f"{self.where}: {'; '.join(said)}{rest}")

    def _places(self, places: list[int], count: int) -> str:
        if count == 1:
            return f"{self.unit} {places[0]}"
        more = f" and {count - len(places)} more" if count > len(places) else ""
        return f"{self.unit}s {', '.join(map(str, places))}{more}"


@dataclass
class _Marks:
    """The decimal mark of a file: a point, or between semicolons and tabs also a comma.

    Attributes:
        comma: True if a comma may be one.
        mark: the mark that was met first, "" before.
    """

    comma: bool
    mark: str = ""

    def plain(self, cells: Sequence[str]) -> Sequence[str] | None:
        """Return cells with decimal points, or None where they have to be looked at one by one."""
        if not self.comma:
            return cells
        text = "".join(cells)
        found = {mark for mark in ",." if mark in text}
        if not found:
            return cells
        if len(found) > 1 or self.mark not in ("", *found):
            return None
        (self.mark,) = found
        return [cell.replace(",", ".") for cell in cells] if self.mark == "," else cells

    def one(self, cell: str) -> str | None:
        """Return a cell with a decimal point, or None where its mark is not the file's."""
        if not self.comma or not _NUMBER.fullmatch(cell.replace(",", ".")):
            return cell
        mark = "," if "," in cell else "." if "." in cell else ""
        if mark and self.mark not in ("", mark):
            return None
        self.mark = mark or self.mark
        return cell.replace(",", ".")


@dataclass(frozen=True)
class _Numbers:
    """A reader of a column of numbers. ``missing`` stands for an empty cell."""

    name: str
    missing: float | None

    def read(
        self, cells: Sequence[str], places: Sequence[int], marks: _Marks, faults: Faults
    ) -> Array:
        plain = marks.plain(cells)
        if plain is not None and self.missing is not None:
            filler = str(float(self.missing))
            plain = [cell or filler for cell in plain]
        try:
            values = np.fromiter(map(float, plain or ()), dtype=np.float64, count=len(cells))
        except ValueError:
            pass
        else:
            text = "".join(cells)
            # Python reads 1_000 and the digits of every script. A table that holds them was not
            # meant for it.
            if np.isfinite(values).all() and text.isascii() and "_" not in text:
                return values
        found = np.full(len(cells), np.nan)
        for index, (cell, place) in enumerate(zip(cells, places, strict=True)):
            value = self._number(cell.strip(), marks)
            if isinstance(value, str):
                faults.add(f", column {self.name!r}: {value}", place)
            else:
                found[index] = value
        return found

    def of_arrow(self, cells: Any) -> Any | None:
        """Return ``cells`` of float64 with a number in each, or None."""
        if cells.null_count and self.missing is not None:
            cells = cells.fill_null(float(self.missing))
        return cells if not cells.null_count and np.isfinite(cells.to_numpy()).all() else None

    def _number(self, cell: str, marks: _Marks) -> float | str:
        """Return the number in a cell, or the fault of the cell."""
        if not cell:
            if self.missing is not None:
                return float(self.missing)
            return "is empty, and the schema has no code for a missing value"
        if _NOT_FINITE.fullmatch(cell):
            return "is NaN or infinity; expected a finite number"
        plain = marks.one(cell)
        if plain is None:
            return "has another decimal mark than the numbers before"
        if not _NUMBER.fullmatch(plain):
            return "cannot be read as a number"
        return float(plain) if math.isfinite(float(plain)) else "is too large for a number"


@dataclass(frozen=True)
class _Words:
    """A reader of a column of categories."""

    column: Categorical

    @cached_property
    def _known(self) -> dict[str, str]:
        return {word_of(value).strip(): word_of(value) for value in self.column.categories}

    @cached_property
    def _numeric(self) -> bool:
        return any(not isinstance(value, str) for value in self.column.categories)

    def read(
        self, cells: Sequence[str], places: Sequence[int], marks: _Marks, faults: Faults
    ) -> list[str]:
        found = list(map(self._known.get, cells))
        if None not in found:
            return found  # type: ignore[return-value]
        unknown = {cell for cell, known in zip(cells, found, strict=True) if known is None}
        others = {cell: self._category(cell.strip(), marks) for cell in unknown}
        for index, (cell, place) in enumerate(zip(cells, places, strict=True)):
            if found[index] is None:
                found[index] = others[cell]
            if found[index] is None:
                what = (
                    "is not among its public categories"
                    if cell.strip()
                    else "is empty, which is not among its categories"
                )
                faults.add(f", column {self.column.name!r}: {what}", place)
        return [category or "" for category in found]

    def of_arrow(self, cells: Any) -> Any | None:
        """Return the category of each of ``cells``, a dictionary, or None."""
        words = cells.dictionary.to_pylist()
        found = [self._category(word.strip(), _Marks(comma=False)) for word in words]
        if None in found:
            return None
        arrow = require("pyarrow", extra="arrow")
        known = arrow.array(found, arrow.string()).dictionary_encode()
        codes = known.indices.take(cells.indices)
        return arrow.DictionaryArray.from_arrays(codes, known.dictionary)

    def _category(self, cell: str, marks: _Marks) -> str | None:
        """Return the category that ``cell`` names, or None."""
        if cell not in self._known and self._numeric:
            plain = cell.replace(",", ".") if marks.comma else cell
            cell = word_of(float(plain)) if _NUMBER.fullmatch(plain) else cell
        return self._known.get(cell, self._else(empty=not cell))

    def _else(self, *, empty: bool) -> str | None:
        """Return the category of a cell that names none."""
        other = self.column.other
        if empty and self.column.missing is not None:
            other = self.column.missing
        return None if other is None else word_of(other)


@dataclass(frozen=True)
class _Cells:
    """A reader of a column of dates, truth values, ordered or hashed words."""

    column: Instant | Truth | Ordered | Hashed

    def read(
        self, cells: Sequence[str], places: Sequence[int], marks: _Marks, faults: Faults
    ) -> list[Any]:
        found = {cell: self.column.of_word(cell.strip()) for cell in set(cells)}
        if None in found.values():
            for cell, place in zip(cells, places, strict=True):
                if found[cell] is None:
                    what = "cannot be read as" if cell.strip() else "is empty; expected"
                    faults.add(
                        f", column {self.column.name!r}: {what} a value of kind "
                        f"{self.column.kind!r}",
                        place,
                    )
        return [found[cell] for cell in cells]


@dataclass(frozen=True)
class _Head:
    """The first line of a file.

    Attributes:
        names: its cells.
        delimiter: the separator of cells.
        after: the number of the line after it.
    """

    names: tuple[str, ...]
    delimiter: str
    after: int

    @classmethod
    def read(cls, lines: Iterator[str], where: str) -> _Head:
        """Read the header line.

        Raises:
            InvalidInput: the file is empty, or the line cannot be read.
        """
        block = list(islice(lines, 1))
        if not block:
            raise InvalidInput(
                f"{where}: is empty; expected a header line with the names of the columns"
            )
        bare = _QUOTED.sub("", block[0])
        delimiter = max(_DELIMITERS, key=bare.count)
        rows, _, read = _records(block, lines, 1, delimiter, Faults(where))
        return cls(tuple(cell.strip() for cell in rows[0]), delimiter, 1 + read)


@dataclass(frozen=True)
class _Reader:
    """Lines of text as rows.

    Attributes:
        head: the header line.
        where: the file, as messages name it.
        schema: the schema of the cells, or None where only subjects are read.
        order: the place in a line of each column of the schema.
        subject: the place in a line of the row's subject, or None.
        unit: the unit that messages count.
    """

    head: _Head
    where: str
    schema: TabularSchema | None = None
    order: tuple[int, ...] = ()
    subject: int | None = None
    unit: str = "line"

    @property
    def width(self) -> int:
        """The number of cells in a line."""
        return len(self.head.names)

    @cached_property
    def faults(self) -> Faults:
        """All faults so far."""
        return Faults(self.where, self.unit)

    @cached_property
    def _marks(self) -> _Marks:
        return _Marks(comma=self.head.delimiter != ",")

    @cached_property
    def _attributes(self) -> Sequence[Any]:
        return () if self.schema is None else self.schema.attributes

    @cached_property
    def _columns(self) -> tuple[_Numbers | _Words | _Cells, ...]:
        columns: list[_Numbers | _Words | _Cells] = []
        for attribute in self._attributes:
            if isinstance(attribute, Categorical):
                columns.append(_Words(attribute))
            elif isinstance(attribute, Numeric):
                columns.append(_Numbers(attribute.name, attribute.missing))
            elif isinstance(attribute, OneHot):
                columns += [_Numbers(name, None) for name in attribute.names]
            else:
                columns.append(_Cells(attribute))
        return tuple(columns)

    def blocks(self, lines: TextIO) -> Iterator[tuple[Any, tuple[str, ...] | None]]:
        """Yield tables of some lines, arrays or of pyarrow, and the subject of each row.

        Raises:
            InvalidInput: there is a fault, once the rest was read. No table follows the fault.
        """
        for rows, places in self.records(lines):
            whose, table = None, rows
            if isinstance(rows, list):
                kept = self.whole(rows, places)
                table = self.table(*kept)
                whose = self._subjects(*kept)
            else:
                self._check_one_hot([cells.to_numpy() for cells in rows.columns], places)
            if len(table) and not self.faults.found:
                yield table, whose
        self.faults.check()

    def records(self, lines: TextIO) -> Iterator[tuple[Any, Sequence[int]]]:
        """Yield blocks of records, as cells or as a table of pyarrow where all are plain, and the
        lines that they start in. Blank lines may stand at the end.
        """
        first = self.head.after
        blanks: list[int] = []
        while text := lines.read(_AT_ONCE):
            text += "" if text.endswith("\n") else lines.readline()
            table = self._as_arrow(text)
            if table is not None:
                places: Sequence[int] = range(first, first + len(table))
                blanks = self._check_blanks(blanks, first)
                first += len(table)
                yield table, places
                continue
            inner = io.StringIO(text, newline="")
            while block := list(islice(inner, _BLOCK)):
                rest = chain(inner, lines)
                rows, places, read = _records(block, rest, first, self.head.delimiter, self.faults)
                blanks += [at for row, at in zip(rows, places, strict=True) if not row]
                last = places[-1] if rows[-1] else max(compress(places, rows), default=0)
                first += read
                blanks = self._check_blanks(blanks, last)
                yield rows, places

    def _check_blanks(self, blanks: list[int], last: int) -> list[int]:
        """Note as faults the blank lines before the line ``last``, and return the others."""
        for place in blanks:
            if place < last:
                fault = ": blank, and lines follow it; take it out, or fill it in"
                self.faults.add(fault, place)
        return [place for place in blanks if place > last]

    def whole(
        self, rows: Sequence[list[str]], places: Sequence[int]
    ) -> tuple[Sequence[list[str]], Sequence[int]]:
        """Return the records that have as many cells as the header, and their lines."""
        width, widths = self.width, list(map(len, rows))
        if widths.count(width) == len(rows):
            return rows, places
        for cells, place in zip(widths, places, strict=True):
            if cells not in (0, width):
                self.faults.add(f": {cells} cells, expected {width} as in the header", place)
        kept = [cells == width for cells in widths]
        return list(compress(rows, kept)), list(compress(places, kept))

    def table(self, rows: Sequence[Sequence[str]], places: Sequence[int]) -> npt.NDArray[Any]:
        """Return rows of ``width`` cells, shape (n, columns)."""
        cells = list(zip(*rows, strict=True)) or [()] * self.width
        numbers = all(isinstance(column, _Numbers) for column in self._columns)
        dtype = np.float64 if numbers else object
        table = np.empty((len(rows), len(self.order)), dtype=dtype)
        for index, (column, place) in enumerate(zip(self._columns, self.order, strict=True)):
            table[:, index] = column.read(cells[place], places, self._marks, self.faults)
        self._check_one_hot(list(table.T), places)
        return table

    def _subjects(self, rows: Sequence[list[str]], places: Sequence[int]) -> tuple[str, ...] | None:
        if self.subject is None:
            return None
        names = []
        for row, place in zip(rows, places, strict=True):
            names.append(row[self.subject].strip())
            fault = no_subject(names[-1])
            if fault:
                self.faults.add(f", column {self.head.names[self.subject]!r}: {fault}", place)
        return tuple(names)

    def _as_arrow(self, text: str) -> Any | None:
        """Return the rows of whole lines as a table of pyarrow, several times faster, or None where
        anything asks for a closer look, or without pyarrow.
        """
        columns = [column for column in self._columns if not isinstance(column, _Cells)]
        if len(columns) < max(1, len(self._columns)) or self.subject is not None or self.width < 2:
            return None
        content = text.encode()
        if b"\r" in content:  # to look for two signs takes eighty times as long
            content = content.replace(b"\r\n", b"\n")
        content += b"" if content.endswith(b"\n") else b"\n"
        if self._marks.comma or b"\r" in content or b"\0" in content or not _is_plain(content):
            return None
        try:
            arrow, csv = require("pyarrow", extra="arrow"), require("pyarrow.csv", extra="arrow")
        except MissingExtra:
            return None
        word, number = arrow.dictionary(arrow.int32(), arrow.string()), arrow.float64()
        keys = [str(place) for place in self.order]
        kinds = [word if isinstance(column, _Words) else number for column in columns]
        try:
            table = csv.read_csv(
                io.BytesIO(content),
                csv.ReadOptions(
                    use_threads=False,
                    block_size=len(content) + 1,
                    column_names=[str(place) for place in range(self.width)],
                ),
                csv.ParseOptions(ignore_empty_lines=False),
                csv.ConvertOptions(
                    include_columns=keys,
                    column_types=dict(zip(keys, kinds, strict=True)),
                    null_values=[""],
                    strings_can_be_null=False,
                ),
            )
        except arrow.ArrowException:
            return None
        read = [
            column.of_arrow(cells.combine_chunks())
            for column, cells in zip(columns, table.columns, strict=True)
        ]
        if len(table) != content.count(b"\n") or any(cells is None for cells in read):
            return None
        assert self.schema is not None  # it has columns
        return arrow.table(read, names=list(self.schema.column_names))

    def _check_one_hot(self, table: Sequence[Any], places: Sequence[int]) -> None:
        start = 0
        for attribute in self._attributes:
            columns = slice(start, start + attribute.columns)
            start += attribute.columns
            if isinstance(attribute, OneHot):
                values = np.array(table[columns], dtype=np.float64)
                right = ((values == 0) | (values == 1)).all(axis=0) & (values.sum(axis=0) == 1)
                # A cell that is no number is a fault of its own.
                for index in np.flatnonzero(~right & ~np.isnan(values).any(axis=0)).tolist():
                    self.faults.add(
                        f", attribute {attribute.name!r}: expected one 1 in its "
                        f"{attribute.columns} columns, and 0 in the others",
                        places[index],
                    )


def _is_plain(content: bytes) -> bool:
    """Return whether each quotation mark begins or ends a cell, so that no two readers differ."""
    if b'"' not in content:
        return True
    signs = np.frombuffer(content, dtype=np.uint8)
    quotes = np.flatnonzero(signs == ord('"'))
    if len(quotes) % 2:
        return False
    ends = (signs == ord(",")) | (signs == ord("\n"))  # the last one also stands before the first
    return bool(ends[quotes[::2] - 1].all() and ends[quotes[1::2] + 1].all())


def _place(path: str | Path | bytes, name: str) -> str:
    return name if isinstance(path, bytes) else f"{name}={str(path)!r}"


@contextmanager
def _lines(path: str | Path | bytes, where: str) -> Iterator[TextIO]:
    """Return the lines of a file, or of its content. Raise in plain words if they cannot be
    read.
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


def _records(
    block: Sequence[str], lines: Iterator[str], first: int, delimiter: str, faults: Faults
) -> tuple[list[list[str]], list[int], int]:
    """Return the cells of every record that starts in ``block``, the lines that they start in, and
    the number of lines read.

    A quoted cell may reach into ``lines``, which follow the block. A blank line has no cells.
    """
    read = partial(csv.reader, delimiter=delimiter, strict=True, skipinitialspace=True)
    rows: list[list[str]] = []
    places: list[int] = []
    with suppress(csv.Error):  # which is told below, with its line
        if all(map(str.strip, block)) and len(whole := list(read(block))) == len(block):
            return whole, list(range(first, first + len(whole))), len(whole)
    reader = read(chain(block, lines))
    while reader.line_num < len(block):
        places.append(first + reader.line_num)
        line = block[reader.line_num]
        try:
            row = next(reader)
        except csv.Error:
            faults.add(" cannot be read as separated text; look at its quotation marks", places[-1])
            raise faults.error() from None
        rows.append(row if line.strip() else [])
    return rows, places, reader.line_num


def _order(
    header: Sequence[str],
    schema: TabularSchema | None,
    ignore: Sequence[str],
    subject_column: str | None,
    where: str,
) -> tuple[tuple[int, ...], int | None]:
    """Return the place in the header of each column of the schema, and the place of the subjects.

    Raises:
        InvalidInput: the columns have faults. The message lists all of them.
    """
    subject = None if subject_column is None else subject_column.strip()
    wanted = [] if schema is None else [name.strip() for name in schema.column_names]
    read = header if schema is not None else [name for name in header if name == subject]
    unread = () if schema is None else schema.left_out
    faults = column_faults(read, wanted, {name.strip() for name in ignore}, subject, unread)
    if faults:
        raise InvalidInput(f"{where}: {'; '.join(faults)}")
    places = {name: place for place, name in enumerate(header)}
    return tuple(places[name] for name in wanted), None if subject is None else places[subject]
