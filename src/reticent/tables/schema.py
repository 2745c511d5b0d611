"""The public facts of a table: its columns, their ranges and categories. Encoding looks at nothing
else.

A schema is declared, or read from a file that was public before the data were seen. Encoding a row
with it uses that row alone, so it leaks nothing about the others. The encoded space has *public
units*: in every attribute two rows are at most 1 apart, whatever they hold.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.checks import as_array, count
from reticent.core.coded_rows import CodedRows
from reticent.core.errors import InvalidInput, InvalidParameter, ReticentError
from reticent.core.files import output_file
from reticent.core.regions import Box
from reticent.tables.attributes import (
    HALF_ROOT,
    KINDS,
    Attribute,
    Instant,
    Numeric,
    OneHot,
    Ordered,
)
from reticent.tables.columns import Column, column_of
from reticent.tables.frames import (
    check_columns,
    names_of,
    ordered_columns,
    ordered_rows,
    plain_rows,
)

FAULTS_SHOWN = 20
"""Faults that one message lists at most."""

ENCODING_VERSION = 1
"""Version of the map from a row to an encoded row, raised whenever the map changes, since distance
changes with it.
"""

_NAMES = [kind.__name__ for kind in KINDS.values()]


@dataclass(frozen=True)
class TabularSchema:
    """The public description of a table.

    Guarantee:
        ``encode`` maps each row by itself, with nothing but the schema. Encoded rows lie in
        ``domain``. Two rows that differ in k attributes, however much, are at most sqrt(k) apart in
        l2. So l2 distance 1 covers any change of any one attribute.

    Attributes:
        attributes: the attributes in the order of the table's columns.
        note: the origin of the schema, for whoever reads the file. It changes nothing.
        left_out: further columns that a data frame may have, and that are not read.

    Example:
        >>> from reticent.tables import Categorical
        >>> schema = TabularSchema((Numeric("age", 0, 100), Categorical("sex", ("Female", "Male"))))
        >>> schema.encode([[50, "Male"]]).round(3).tolist()
        [[0.5, 0.0, 0.707]]
    """

    attributes: tuple[Attribute, ...]
    note: str = ""
    left_out: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.attributes, (list, tuple)) or not all(
            isinstance(part, Attribute) for part in self.attributes
        ):
            raise InvalidParameter(f"schema: expected a list of attributes: {', '.join(_NAMES)}")
        object.__setattr__(self, "attributes", tuple(self.attributes))
        names = [attribute.name for attribute in self.attributes]
        if not names or len(set(names)) < len(names):
            raise InvalidParameter(
                "schema: expected at least one attribute, each with its own name"
            )

    @classmethod
    def numbers(
        cls, columns: int, lower: float, upper: float, *, names: Iterable[str] | None = None
    ) -> TabularSchema:
        """Return ``columns`` numeric columns with one public range, called x0, x1, ... without
        names.
        """
        found = range(count(columns, name="columns"))
        called = [f"x{index}" for index in found] if names is None else list(names)
        return cls(tuple(Numeric(name, lower, upper) for name in called))

    @property
    def columns(self) -> int:
        """The number of columns of the table."""
        return sum(attribute.columns for attribute in self.attributes)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the table's columns, in order. An attribute of several columns has a name
        for each.
        """
        return tuple(
            name
            for attribute in self.attributes
            for name in (attribute.names if isinstance(attribute, OneHot) else (attribute.name,))
        )

    @property
    def dimension(self) -> int:
        """The number of encoded coordinates."""
        return sum(attribute.width for attribute in self.attributes)

    @property
    def groups(self) -> tuple[tuple[str, slice, bool], ...]:
        """The name of each attribute, its encoded coordinates, and True if these are a one-hot
        code.
        """
        ends = np.cumsum([0, *(attribute.width for attribute in self.attributes)]).tolist()
        return tuple(
            (attribute.name, slice(start, stop), attribute.codes)
            for attribute, start, stop in zip(self.attributes, ends, ends[1:], strict=False)
        )

    @cached_property
    def domain(self) -> Box:
        """The public box that encoded rows lie in."""
        upper = np.concatenate([attribute.upper_corner for attribute in self.attributes])
        return Box(np.zeros(len(upper)), upper)

    @property
    def diameter(self) -> float:
        """The largest l2 distance of two encoded rows: 1 per attribute."""
        return math.sqrt(len(self.attributes))

    def code(self, rows: npt.ArrayLike, *, name: str = "X") -> CodedRows:
        """Return encoded rows without their zeros, so that ``code(rows).dense()`` is
        ``encode(rows)``.

        Args:
            rows: shape (n, columns).
            name: the caller's name of the rows, used in messages.

        Raises:
            InvalidInput: the shape is wrong, there are no rows, a number is missing or not finite,
                a category is unknown, or the columns of a data frame are not the schema's, in its
                order. The message lists all faults, column by column, and shows no value.
        """
        table = self._columns_of(rows, name=name)
        places = [
            place
            for _, part, one_hot in self.groups
            if not one_hot
            for place in range(part.start, part.stop)
        ]
        length = len(table[0])
        numbers = np.empty((length, len(places)))
        codes = np.empty((length, sum(one_hot for _, _, one_hot in self.groups)), dtype=np.int32)
        column = number = code = 0
        faults = []
        for attribute, (_, part, _) in zip(self.attributes, self.groups, strict=True):
            cells = table[column : column + attribute.columns]
            column += attribute.columns
            try:
                if isinstance(attribute, Numeric | Instant | Ordered):
                    numbers[:, number : number + attribute.width] = _read(attribute.encode, cells)
                    number += attribute.width
                else:
                    np.add(_read(attribute.code, cells), part.start, out=codes[:, code])
                    code += 1
            except InvalidInput as error:
                faults.append(str(error))
        if faults:
            more = len(faults) - FAULTS_SHOWN
            rest = [f"and {more} other columns"] * (more > 0)
            raise InvalidInput("; ".join([*faults[:FAULTS_SHOWN], *rest]))
        # What is charged rests on this, so it is looked at before anything is. Codes are in the box
        # by what they are.
        inside = (
            (numbers >= self.domain.lower[places]) & (numbers <= self.domain.upper[places])
        ).all(axis=1)
        if not inside.all():
            outside = length - int(inside.sum())
            raise InvalidInput(
                f"{name}: {outside} of {length} encoded rows left the public box; report the schema"
            )
        return CodedRows(
            numbers, np.array(places, dtype=np.int32), codes, HALF_ROOT, self.dimension
        )

    def encode(self, rows: npt.ArrayLike, *, name: str = "X") -> Array:
        """Return encoded rows, shape (n, dimension), float64, inside ``domain``.

        Arguments and errors are those of ``code``.
        """
        return self.code(rows, name=name).dense()

    def rows(self, X: npt.ArrayLike, *, name: str = "X") -> npt.NDArray[Any]:
        """Return the cells of a table, its columns in the schema's order, shape (n, columns).

        Args:
            X: a data frame, whose columns are found by name, or an array by position.
            name: the caller's name of the table, used in messages.

        Raises:
            InvalidInput: the shape is wrong, there are no rows, or columns are not the schema's.
        """
        if self._named(X, name=name):
            return as_table(ordered_rows(X, self.column_names), name=name)
        return as_table(plain_rows(X), name=name)

    def _named(self, X: npt.ArrayLike, *, name: str) -> bool:
        """Return True for a data frame, which has the schema's columns."""
        names = names_of(X)
        if names is None:
            return False
        given = [column for column in names.tolist() if column not in self.left_out]
        check_columns(given, self.column_names, by="the schema", name=name)
        return True

    def _columns_of(self, X: npt.ArrayLike, *, name: str) -> list[Column]:
        """Return the columns of ``rows``, each in its own type."""
        if self._named(X, name=name):
            columns = ordered_columns(X, self.column_names)
            if not len(columns[0]):
                self.rows(X, name=name)  # refuses it
            return columns
        table = as_table(plain_rows(X), name=name)
        if table.shape[1] != self.columns:
            raise InvalidInput(
                f"{name}: expected {self.columns} columns as in the schema, got {table.shape[1]}"
            )
        return [column_of(cells) for cells in table.T]

    @cached_property
    def digest(self) -> str:
        """The identity of the encoded space: 32 hexadecimal digits of SHA-256 of ``to_dict`` and of
        ``ENCODING_VERSION``.
        """
        described = {"encoding": ENCODING_VERSION, "attributes": self.to_dict()["attributes"]}
        text = json.dumps(described, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, which ``from_dict`` reads back."""
        attributes = [{"kind": part.kind, **asdict(part)} for part in self.attributes]
        unread = {"left_out": list(self.left_out)} if self.left_out else {}
        return {"note": self.note, **unread, "attributes": attributes}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> TabularSchema:
        """Return the schema that ``to_dict`` described.

        Raises:
            InvalidInput: ``values`` are no such description.
        """
        try:
            attributes = []
            for fields in values["attributes"]:
                rest = dict(fields)
                attributes.append(KINDS[rest.pop("kind")](**rest))
            return cls(
                tuple(attributes),
                note=str(values.get("note", "")),
                left_out=tuple(map(str, values.get("left_out", ()))),
            )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, ReticentError):
                raise
            raise InvalidInput(
                f"schema: expected attributes of kind {', '.join(KINDS)} ({error})"
            ) from error

    @classmethod
    def from_frame(
        cls,
        public_rows: Any,
        *,
        ignore: Iterable[str] = (),
        given: Iterable[Attribute] = (),
        missing: bool = True,
        most_categories: int = 50,
        buckets: int = 256,
    ) -> TabularSchema:
        """Return a draft for the columns of a *public* data frame, to be read and edited.

        Never pass private rows. Ranges and categories are taken from the values that occur, and
        whoever sees the schema sees them. Ranges are rounded outward. ``draft_schema`` also says
        what is refused.

        Args:
            public_rows: a data frame of rows that may be published.
            ignore: columns to leave out, such as labels. The schema remembers them: rows may have
                them wherever the schema is used, and they are not read.
            given: attributes that are known already, in place of a draft.
            missing: True to give every column a code for "no value", even if none occurs.
            most_categories: the largest number of different words that are a ``Categorical``.
            buckets: the number of buckets of a ``Hashed`` column, for words of more different
                values.

        Raises:
            InvalidInput: there are no names, or a column is constant, or one of texts or
                identifiers.

        Example:
            >>> from reticent.tables.frames import NamedRows
            >>> rows = NamedRows(np.array([[17.5], [88.2]]), ("age",))
            >>> TabularSchema.from_frame(rows, missing=False).attributes
            (Numeric(name='age', lower=17.0, upper=89.0, scale='linear', missing=None),)
        """
        from reticent.tables.drafting import draft_schema

        return draft_schema(
            public_rows,
            ignore=ignore,
            given=given,
            missing=missing,
            most_categories=most_categories,
            buckets=buckets,
        )

    def review(self, X: npt.ArrayLike) -> dict[str, dict[str, int]]:
        """Count the cells of each attribute that are missing, beyond their public range, or
        unknown.

        Such cells are answered as the schema says. The counts are as private as X, for the owner of
        the rows only.

        Args:
            X: rows as ``encode`` takes them.

        Returns:
            For each attribute with any such cell, counts under "missing", "below", "above" and
            "unknown".

        Example:
            >>> TabularSchema((Numeric("age", 0, 100),)).review([[50], [101]])
            {'age': {'above': 1}}
        """
        table = self.rows(X)
        found, column = {}, 0
        for attribute in self.attributes:
            cells = table[:, column : column + attribute.columns]
            column += attribute.columns
            counts = {what: number for what, number in attribute.odd(cells).items() if number}
            if counts:
                found[attribute.name] = counts
        return found

    def write(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the schema as a JSON file that ``read`` reads, whole or not at all.

        Args:
            path: the path of the file.
            overwrite: True to replace an existing file.

        Raises:
            WriteFailed, InvalidInput: nothing is written.
        """
        content = (json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n").encode()
        with output_file(Path(path), size=len(content), overwrite=overwrite) as put:
            put(content)
        return Path(path)

    @classmethod
    def read(cls, path: str | Path) -> TabularSchema:
        """Return the schema in a public JSON file.

        Raises:
            InvalidInput: the file cannot be read or is not a schema.
        """
        try:
            values = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InvalidInput(
                f"schema={str(path)!r}: expected a JSON file, which cannot be read ({error})"
            ) from error
        return cls.from_dict(values)


def _read(
    reading: Callable[[npt.NDArray[Any]], npt.NDArray[Any]], columns: list[Column]
) -> npt.NDArray[Any]:
    """Return what an attribute reads in its columns, from each different cell once."""
    if len(columns) == 1:
        [column] = columns
        if column.places is None:
            return reading(column.values[:, None])
        # What is refused is counted in cells, and among values there may be some in none.
        with suppress(InvalidInput):
            return reading(column.values[:, None])[column.places]
        return reading(column.cells()[:, None])
    kinds = {column.values.dtype for column in columns}
    cells = np.empty(
        (len(columns[0]), len(columns)), dtype=kinds.pop() if len(kinds) == 1 else object
    )
    for place, column in enumerate(columns):
        found = column.cells()
        cells[:, place] = found if found.dtype == cells.dtype else found.tolist()
    return reading(cells)


def as_table(rows: npt.ArrayLike, *, name: str) -> npt.NDArray[Any]:
    """Return ``rows`` (an array, a list of records, a data frame) as an array of shape
    (n, columns).

    Words stay words.

    Raises:
        InvalidInput: ``rows`` are sparse, complex, of another shape, or empty. Values are never
            shown.
    """
    if np.ma.is_masked(rows) or (
        isinstance(rows, (list, tuple)) and any(np.ma.is_masked(row) for row in rows)
    ):
        raise InvalidInput(
            f"{name}: contains masked values; expected a value in every place, or the schema's "
            "code for a missing one"
        )
    if isinstance(rows, (list, tuple)):
        try:
            # A list of records may mix numbers and words, which only objects hold side by side.
            table = np.asarray(rows, dtype=object)
        except Exception as error:
            raise InvalidInput(
                f"{name}: expected rows of one length, got {type(rows).__name__} with "
                "different lengths"
            ) from error
    else:
        table = as_array(rows, name=name)
    if table.dtype.kind == "c":
        raise InvalidInput(
            f"{name}: Complex data not supported; expected real numbers, got dtype={table.dtype}"
        )
    if table.ndim != 2:
        raise InvalidInput(
            f"{name}: expected shape (n, columns), got shape={table.shape}. Reshape your data: "
            "one row per record"
        )
    for size, what in ((len(table), "sample"), (table.shape[1], "feature")):
        if size == 0:
            raise InvalidInput(
                f"{name}: 0 {what}(s) (shape={table.shape}) while a minimum of 1 is required."
            )
    return table
