"""What is public about a table: its columns, their ranges and categories. Encoding looks at nothing
else.

A schema is declared, or read from a file that was public before the data were seen. Encoding a
row with it uses that row alone, so it leaks nothing about the others, and the encoded space has
*public units*: in every attribute two rows are at most 1 apart, whatever they hold.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from reticent.core.checks import as_array, count, finite_array, is_sparse, one_of, real, shown
from reticent.core.coded_rows import CodedRows, Codes
from reticent.core.errors import InvalidInput, InvalidParameter, ReticentError
from reticent.core.regions import Box
from reticent.tables.feature_names import check_columns, names_of

Array = npt.NDArray[np.float64]

ENCODING_VERSION = 1
"""Version of the map from a row to an encoded row; raised whenever it changes, since distance
changes with it.
"""

HALF_ROOT = math.nextafter(math.sqrt(0.5), 0.0)
"""Value of the one in a one-hot code, the root of 1/2 from below: two different categories are 1
apart in l2, and not more.
"""

_MISSING_INDICATOR = math.sqrt(
    0.75
)  # this double lies below the root; with 1/2, a missing number is at most 1 from any other

_LEAST_SPAN = 2.0**-1022  # below it doubles lose digits

_ROWS_AT_ONCE = 8192  # so that a wide one-hot table is not copied as a whole


@dataclass(frozen=True)
class Numeric:
    """A column of numbers, encoded linearly (or by its logarithm) from its public range to [0, 1].

    Values outside the range are moved to its ends: a clip moves no two values apart.

    Attributes:
        name: of the column.
        lower, upper: public range, in the column's units; lower < upper, and the doubles hold upper
            - lower.
        scale: "linear", or "log" for log(1 + value - lower).
        missing: the number that stands for "no value", or None where every value must be there.
            With it the column takes two coordinates: a missing value is 1/2 and sqrt(3/4), at
            most 1 from any other.
    """

    name: str
    lower: float
    upper: float
    scale: str = "linear"
    missing: float | None = None

    kind: ClassVar[str] = "numeric"
    columns: ClassVar[int] = 1

    def __post_init__(self) -> None:
        _named(self.name)
        for field in ("lower", "upper", "missing"):
            if getattr(self, field) is not None or field != "missing":
                object.__setattr__(
                    self, field, real(getattr(self, field), name=f"column {self.name!r}: {field}")
                )
        if self.missing is not None and not math.isfinite(self.missing):
            raise InvalidParameter(
                f"column {self.name!r}: missing={self.missing!r}: expected a number that a "
                "cell can be equal to"
            )
        if not (
            math.isfinite(self.lower) and math.isfinite(self.upper) and self.lower < self.upper
        ):
            raise InvalidParameter(
                f"column {self.name!r}: lower={self.lower!r}, upper={self.upper!r}: expected "
                "lower < upper"
            )
        # Of these spans 1/span and log1p(span) are positive and finite too.
        if not _LEAST_SPAN <= self.upper - self.lower < math.inf:
            raise InvalidParameter(
                f"column {self.name!r}: lower={self.lower!r}, upper={self.upper!r}: expected "
                "upper - lower from 2^-1022 to "
                "2^1024; rescale the column"
            )
        one_of(self.scale, ("linear", "log"), name=f"column {self.name!r}: scale")

    @property
    def width(self) -> int:
        """Encoded coordinates."""
        return 1 if self.missing is None else 2

    @property
    def upper_corner(self) -> list[float]:
        """Largest encoded value of each coordinate; the smallest is 0."""
        return [1.0] if self.missing is None else [1.0, _MISSING_INDICATOR]

    def encode(self, rows: npt.NDArray[Any]) -> Array:
        """Encoded coordinates, shape (n, width), of a column of shape (n, 1)."""
        values = finite_array(rows[:, 0], name=f"column {self.name!r}", ndim=1, allow_empty=True)
        clipped = np.clip(values, self.lower, self.upper) - self.lower
        span = self.upper - self.lower
        unit = clipped / span if self.scale == "linear" else np.log1p(clipped) / math.log1p(span)
        unit = np.clip(unit, 0.0, 1.0)
        if self.missing is None:
            return np.asarray(unit[:, None])
        absent = values == self.missing
        return np.stack(
            [np.where(absent, 0.5, unit), np.where(absent, _MISSING_INDICATOR, 0.0)], axis=1
        )


@dataclass(frozen=True)
class Categorical:
    """A column of words or numbers from a public list, encoded one-hot with the value sqrt(1/2).

    Attributes:
        name: of the column.
        categories: every value that may occur; a missing value is one of them ("?"), or may not
            occur.
        other: the category that stands for any value not in the list, or None: such values are
            then refused.
    """

    name: str
    categories: tuple[str | float, ...]
    other: str | float | None = None

    kind: ClassVar[str] = "categorical"
    columns: ClassVar[int] = 1

    def __post_init__(self) -> None:
        _named(self.name)
        if not isinstance(self.categories, (list, tuple, range, np.ndarray)):
            raise InvalidParameter(
                f"column {self.name!r}: categories={shown(self.categories)}: expected a list "
                "of words or numbers"
            )
        values = (
            value.item() if isinstance(value, np.generic) else value for value in self.categories
        )
        object.__setattr__(self, "categories", tuple(values))
        words = {word_of(value) for value in self.categories}
        if len(self.categories) < 2 or len(words) < len(self.categories):
            raise InvalidParameter(
                f"column {self.name!r}: expected at least two different categories"
            )
        if self.other is not None and word_of(self.other) not in words:
            raise InvalidParameter(
                f"column {self.name!r}: other={shown(self.other)}: expected one of the categories"
            )

    @property
    def width(self) -> int:
        """Encoded coordinates."""
        return len(self.categories)

    @property
    def upper_corner(self) -> list[float]:
        """Largest encoded value of each coordinate; the smallest is 0."""
        return [HALF_ROOT] * self.width

    def code(self, rows: npt.NDArray[Any]) -> Codes:
        """The position in the list of each value of a column of shape (n, 1), shape (n,).

        Raises:
            InvalidInput: a value that is not in the list, and no ``other``. Values are never shown.
        """
        positions = {word_of(value): position for position, value in enumerate(self.categories)}
        fallback = -1 if self.other is None else positions[word_of(self.other)]

        def found(values: list[Any]) -> Codes:
            # One by one: an array of words would be as wide as the longest one, and drop NULs at
            # their ends.
            words = values if set(map(type, values)) <= {str} else map(word_of, values)
            return np.fromiter(
                map(positions.get, words, repeat(fallback)), dtype=np.int32, count=len(values)
            )

        if rows.dtype.kind in "fiub":  # few different numbers, mostly
            different, where = np.unique(rows[:, 0], return_inverse=True)
            codes = found(different.tolist())[where]
        else:
            codes = found(rows[:, 0].tolist())
        unknown = int((codes < 0).sum())
        if unknown:
            raise InvalidInput(
                f"column {self.name!r}: {unknown} of {len(rows)} values are not among its "
                f"{len(self.categories)} public "
                "categories; declare them in the schema, or name a category for all others"
            )
        return codes


@dataclass(frozen=True)
class OneHot:
    """One attribute that stands in the table as several 0/1 columns, exactly one of which is 1.

    Attributes:
        name: of the attribute.
        names: of its columns.
    """

    name: str
    names: tuple[str, ...]

    kind: ClassVar[str] = "one-hot"

    def __post_init__(self) -> None:
        _named(self.name)
        if not isinstance(self.names, (list, tuple)) or not all(
            isinstance(name, str) for name in self.names
        ):
            raise InvalidParameter(
                f"attribute {self.name!r}: names={shown(self.names)}: expected a list of "
                "column names"
            )
        object.__setattr__(self, "names", tuple(self.names))
        if len(self.names) < 2:
            raise InvalidParameter(f"attribute {self.name!r}: expected at least two columns")

    @property
    def columns(self) -> int:
        """Columns of the table."""
        return len(self.names)

    @property
    def width(self) -> int:
        """Encoded coordinates."""
        return len(self.names)

    @property
    def upper_corner(self) -> list[float]:
        """Largest encoded value of each coordinate; the smallest is 0."""
        return [HALF_ROOT] * self.width

    def code(self, rows: npt.NDArray[Any]) -> Codes:
        """Which column holds the one, for each row of columns of shape (n, width), shape (n,).

        Raises:
            InvalidInput: a row with another number of ones than one. Values are never shown.
        """
        codes, wrong = np.empty(len(rows), dtype=np.int32), 0
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            values = finite_array(
                rows[part], name=f"attribute {self.name!r}", ndim=2, allow_empty=True
            )
            ones = values == 1
            right = (ones | (values == 0)).all(axis=1) & (ones.sum(axis=1) == 1)
            codes[part], wrong = ones.argmax(axis=1), wrong + int((~right).sum())
        if wrong:
            raise InvalidInput(
                f"attribute {self.name!r}: expected exactly one 1 per row, {wrong} of "
                f"{len(rows)} rows differ"
            )
        return codes


Attribute = Numeric | Categorical | OneHot
_KINDS: dict[str, type[Numeric] | type[Categorical] | type[OneHot]] = {
    "numeric": Numeric,
    "categorical": Categorical,
    "one-hot": OneHot,
}


@dataclass(frozen=True)
class TabularSchema:
    """The public description of a table.

    Guarantee:
        ``encode`` maps each row by itself, with nothing but the schema. Encoded rows lie in
        ``domain``, and two rows that differ in k attributes, however much, are at most sqrt(k)
        apart in l2; so l2 distance 1 covers any change of any one attribute.

    Attributes:
        attributes: in the order of the table's columns.

    Example:
        >>> schema = TabularSchema((Numeric("age", 0, 100), Categorical("sex", ("Female", "Male"))))
        >>> schema.encode([[50, "Male"]]).round(3).tolist()
        [[0.5, 0.0, 0.707]]
    """

    attributes: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.attributes, (list, tuple)) or not all(
            isinstance(part, Attribute) for part in self.attributes
        ):
            raise InvalidParameter(
                "schema: expected a list of Numeric, Categorical and OneHot attributes"
            )
        object.__setattr__(self, "attributes", tuple(self.attributes))
        names = [attribute.name for attribute in self.attributes]
        if not names or len(set(names)) < len(names):
            raise InvalidParameter(
                "schema: expected at least one attribute, each with its own name"
            )

    @classmethod
    def numbers(cls, columns: int, lower: float, upper: float) -> TabularSchema:
        """``columns`` numeric columns with one public range."""
        return cls(
            tuple(
                Numeric(f"x{index}", lower, upper)
                for index in range(count(columns, name="columns"))
            )
        )

    @property
    def columns(self) -> int:
        """Columns of the table."""
        return sum(attribute.columns for attribute in self.attributes)

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the table's columns, in order; an attribute of several columns has a name for
        each.
        """
        return tuple(
            name
            for attribute in self.attributes
            for name in (attribute.names if isinstance(attribute, OneHot) else (attribute.name,))
        )

    @property
    def dimension(self) -> int:
        """Encoded coordinates."""
        return sum(attribute.width for attribute in self.attributes)

    @property
    def groups(self) -> tuple[tuple[str, slice, bool], ...]:
        """For each attribute its name, its encoded coordinates, and whether these are a one-hot
        code.
        """
        ends = np.cumsum([0, *(attribute.width for attribute in self.attributes)]).tolist()
        return tuple(
            (attribute.name, slice(start, stop), not isinstance(attribute, Numeric))
            for attribute, start, stop in zip(self.attributes, ends, ends[1:], strict=False)
        )

    @cached_property
    def domain(self) -> Box:
        """The public box that encoded rows lie in."""
        upper = np.concatenate([attribute.upper_corner for attribute in self.attributes])
        return Box(np.zeros(len(upper)), upper)

    @property
    def diameter(self) -> float:
        """Largest l2 distance of two encoded rows: 1 per attribute."""
        return math.sqrt(len(self.attributes))

    def code(self, rows: npt.ArrayLike, *, name: str = "X") -> CodedRows:
        """Encoded rows without their zeros: ``code(rows).dense()`` is ``encode(rows)``.

        Args:
            rows: shape (n, columns).
            name: what the caller calls them; used in messages.

        Raises:
            InvalidInput: wrong shape, no rows, a number that is missing or not finite, an
                unknown category, or a data frame whose columns are not the schema's, in its
                order. Values are never shown.
        """
        names = names_of(rows)
        if names is not None:
            self.check_columns(names.tolist(), name=name)
        table = as_table(rows, name=name)
        if table.shape[1] != self.columns:
            raise InvalidInput(
                f"{name}: expected {self.columns} columns as in the schema, got {table.shape[1]}"
            )
        places = [
            place
            for _, part, one_hot in self.groups
            if not one_hot
            for place in range(part.start, part.stop)
        ]
        numbers = np.empty((len(table), len(places)))
        codes = np.empty(
            (len(table), sum(one_hot for _, _, one_hot in self.groups)), dtype=np.int32
        )
        column = number = code = 0
        for attribute, (_, part, _) in zip(self.attributes, self.groups, strict=True):
            cells = table[:, column : column + attribute.columns]
            column += attribute.columns
            if isinstance(attribute, Numeric):
                numbers[:, number : number + attribute.width] = attribute.encode(cells)
                number += attribute.width
            else:
                np.add(attribute.code(cells), part.start, out=codes[:, code])
                code += 1
        # What is charged rests on this; so it is looked at before anything is. Codes are in the box
        # by what they are.
        inside = (
            (numbers >= self.domain.lower[places]) & (numbers <= self.domain.upper[places])
        ).all(axis=1)
        if not inside.all():
            outside = len(table) - int(inside.sum())
            raise InvalidInput(
                f"{name}: {outside} of {len(table)} encoded rows left the public box; report "
                "the schema"
            )
        return CodedRows(
            numbers, np.array(places, dtype=np.int32), codes, HALF_ROOT, self.dimension
        )

    def encode(self, rows: npt.ArrayLike, *, name: str = "X") -> Array:
        """Encoded rows, shape (n, dimension), float64, inside ``domain``; see ``code`` for
        arguments and what it raises.
        """
        return self.code(rows, name=name).dense()

    def check_columns(self, names: Sequence[str], *, name: str = "X") -> None:
        """Refuses columns that are not the schema's, in its order.

        Raises:
            InvalidInput: with the names that differ.
        """
        check_columns(list(names), list(self.column_names), by="the schema", name=name)

    @cached_property
    def digest(self) -> str:
        """Identity of the encoded space: 32 hexadecimal digits of SHA-256 of ``to_dict`` and of
        ``ENCODING_VERSION``.
        """
        text = json.dumps(
            {"encoding": ENCODING_VERSION, **self.to_dict()}, sort_keys=True, separators=(",", ":")
        )
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; ``from_dict`` reads them back."""
        return {
            "attributes": [
                {"kind": attribute.kind, **asdict(attribute)} for attribute in self.attributes
            ]
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> TabularSchema:
        """The schema that ``to_dict`` described.

        Raises:
            InvalidInput: not such a description.
        """
        try:
            attributes = []
            for fields in values["attributes"]:
                rest = dict(fields)
                attributes.append(_KINDS[rest.pop("kind")](**rest))
            return cls(tuple(attributes))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, ReticentError):
                raise
            raise InvalidInput(
                f"schema: expected attributes of kind {', '.join(_KINDS)} ({error})"
            ) from error

    @classmethod
    def read(cls, path: str | Path) -> TabularSchema:
        """The schema in a public JSON file.

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


def _named(name: Any) -> None:
    if not isinstance(name, str):
        raise InvalidParameter(f"name={shown(name)}: expected the name of a column")


def word_of(value: Any) -> str:
    """One spelling of a category, the same for 3, 3.0 and numpy's own numbers.

    Example:
        >>> word_of(3.0), word_of(2.5), word_of("office")
        ('3', '2.5', 'office')
    """
    if type(value) is str:
        return value
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    try:
        return str(value)
    except Exception:
        # Python writes no integers of more than 4300 digits, and a class of somebody's own may
        # raise anything.
        return f"<{type(value).__name__} that cannot be written>"


def as_table(rows: npt.ArrayLike, *, name: str) -> npt.NDArray[Any]:
    """``rows`` (an array, a list of records, a data frame) as an array of shape (n, columns); words
    stay words.

    Raises:
        InvalidInput: sparse, complex, of another shape, or empty. Values are never shown.
    """
    if np.ma.is_masked(rows) or (
        isinstance(rows, (list, tuple)) and any(np.ma.is_masked(row) for row in rows)
    ):
        raise InvalidInput(
            f"{name}: contains masked values; expected a value in every place, or the schema's "
            "code for a missing one"
        )
    if is_sparse(rows):
        raise InvalidInput(f"{name}: sparse input is not supported; expected a dense table")
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
