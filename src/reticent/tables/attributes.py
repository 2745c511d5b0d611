"""Kinds of attributes of a table: what is public about each, and how a cell is encoded by it.

Every kind maps a cell by itself, and two cells of one attribute, whatever they hold, are at most 1
apart in l2 once they are encoded. ``numbers`` kinds give coordinates in [0, 1]; ``codes`` kinds
choose one of their coordinates, which then holds ``HALF_ROOT``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import repeat
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from reticent.core.checks import count, finite_array, flag, one_of, real, shown
from reticent.core.coded_rows import Codes
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.tables.cells import (
    absent,
    instant_of_word,
    instants,
    numbers,
    truth_of_word,
    word_of,
)

Array = npt.NDArray[np.float64]

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
    codes: ClassVar[bool] = False
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
        values, empty = self._values(rows)
        clipped = np.clip(values, self.lower, self.upper) - self.lower
        span = self.upper - self.lower
        unit = clipped / span if self.scale == "linear" else np.log1p(clipped) / math.log1p(span)
        return _coordinates(unit, None if self.missing is None else empty)

    def odd(self, rows: npt.NDArray[Any]) -> dict[str, int]:
        """How many cells are missing, below and above the public range."""
        values, empty = self._values(rows)
        return _beyond(values, empty, self.lower, self.upper)

    def _values(self, rows: npt.NDArray[Any]) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Numbers, those that are missing at the lower end, and which are missing."""
        values = numbers(rows[:, 0], name=f"column {self.name!r}")
        empty = np.isnan(values)
        if self.missing is None:
            _refuse_missing(self.name, empty)
        else:
            empty |= values == self.missing
        return np.where(empty, self.lower, values), empty


@dataclass(frozen=True)
class Categorical:
    """A column of words or numbers from a public list, encoded one-hot with the value sqrt(1/2).

    Attributes:
        name: of the column.
        categories: every value that may occur; a missing value is one of them ("?"), or may not
            occur.
        other: the category that stands for any value not in the list, or None: such values are
            then refused.
        missing: the category that stands for "no value" (None, NaN, NaT, an empty cell), or None:
            it is then ``other``, where there is one, or refused.
    """

    name: str
    categories: tuple[str | float, ...]
    other: str | float | None = None
    missing: str | float | None = None

    kind: ClassVar[str] = "categorical"
    codes: ClassVar[bool] = True
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
        for field, value in (("other", self.other), ("missing", self.missing)):
            if value is not None and word_of(value) not in words:
                raise InvalidParameter(
                    f"column {self.name!r}: {field}={shown(value)}: expected one of the categories"
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
        codes, _ = self._codes(rows)
        unknown = int((codes < 0).sum())
        if unknown:
            raise InvalidInput(
                f"column {self.name!r}: {unknown} of {len(rows)} values are not among its "
                f"{len(self.categories)} public categories; declare them in the schema, or name a "
                "category for all others"
            )
        return codes

    def odd(self, rows: npt.NDArray[Any]) -> dict[str, int]:
        """How many cells are missing, and how many unknown."""
        _, counts = self._codes(rows)
        return counts

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {word_of(value): position for position, value in enumerate(self.categories)}

    def _codes(self, rows: npt.NDArray[Any]) -> tuple[Codes, dict[str, int]]:
        """Positions, -1 for values that are refused; and how many are missing and unknown."""
        codes = _positions_of(rows[:, 0], self._positions)
        fallback = -1 if self.other is None else self._positions[word_of(self.other)]
        none = fallback if self.missing is None else self._positions[word_of(self.missing)]
        strange = codes < 0
        empty = np.zeros(len(rows), dtype=bool)
        if strange.any():
            empty[strange] = absent(rows[strange, 0])
        codes[strange] = np.where(empty[strange], none, fallback)
        return codes, {"missing": int(empty.sum()), "unknown": int((strange & ~empty).sum())}


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
    codes: ClassVar[bool] = True

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

    def odd(self, rows: npt.NDArray[Any]) -> dict[str, int]:
        """Nothing: a row that is not one-hot is refused."""
        self.code(rows)
        return {}


@dataclass(frozen=True)
class Instant:
    """A column of dates, or dates and times, encoded linearly from its public range to [0, 1].

    Values with a time zone are moved to UTC. Values outside the range are moved to its ends.

    Attributes:
        name: of the column.
        lower, upper: public range as ISO 8601 texts, lower < upper.
        missing: whether a cell may hold no value; the column then takes two coordinates, as
            ``Numeric`` does.
    """

    name: str
    lower: str
    upper: str
    missing: bool = False

    kind: ClassVar[str] = "instant"
    codes: ClassVar[bool] = False
    columns: ClassVar[int] = 1

    def __post_init__(self) -> None:
        _named(self.name)
        flag(self.missing, name=f"column {self.name!r}: missing")
        ends = [instant_of_word(end) if isinstance(end, str) else None for end in self._texts]
        if None in ends or not ends[0] < ends[1]:  # type: ignore[operator]
            raise InvalidParameter(
                f"column {self.name!r}: lower={shown(self.lower)}, upper={shown(self.upper)}: "
                "expected ISO 8601 texts, lower < upper"
            )

    @property
    def width(self) -> int:
        """Encoded coordinates."""
        return 2 if self.missing else 1

    @property
    def upper_corner(self) -> list[float]:
        """Largest encoded value of each coordinate; the smallest is 0."""
        return [1.0, _MISSING_INDICATOR] if self.missing else [1.0]

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The range in microseconds since 1970."""
        lower, upper = (instant_of_word(end) for end in self._texts)
        assert lower is not None  # checked when it was made
        assert upper is not None
        return lower, upper

    def encode(self, rows: npt.NDArray[Any]) -> Array:
        """Encoded coordinates, shape (n, width), of a column of shape (n, 1)."""
        times, empty = self._values(rows)
        lower, upper = self.ends
        unit = (np.clip(times, lower, upper) - lower) / (upper - lower)
        return _coordinates(unit, empty if self.missing else None)

    def odd(self, rows: npt.NDArray[Any]) -> dict[str, int]:
        """How many cells are missing, below and above the public range."""
        return _beyond(*self._values(rows), *self.ends)

    def of_word(self, word: str) -> str | None:
        """The cell of a file, or None where it is none of this column's."""
        if not word:
            return "" if self.missing else None
        return None if instant_of_word(word) is None else word

    @property
    def _texts(self) -> tuple[str, str]:
        return self.lower, self.upper

    def _values(self, rows: npt.NDArray[Any]) -> tuple[Array, npt.NDArray[np.bool_]]:
        times = instants(rows[:, 0], name=f"column {self.name!r}")
        empty = np.isnan(times)
        if not self.missing:
            _refuse_missing(self.name, empty)
        return np.where(empty, self.ends[0], times), empty


@dataclass(frozen=True)
class Truth:
    """A column of truth values, encoded one-hot: False, True and, where it may be, no value.

    True and False may be written as truth values, as 1 and 0, or as the words true and false, yes
    and no.

    Attributes:
        name: of the column.
        missing: whether a cell may hold no value.
    """

    name: str
    missing: bool = False

    kind: ClassVar[str] = "truth"
    codes: ClassVar[bool] = True
    columns: ClassVar[int] = 1

    def __post_init__(self) -> None:
        _named(self.name)
        flag(self.missing, name=f"column {self.name!r}: missing")

    @property
    def width(self) -> int:
        """Encoded coordinates."""
        return 3 if self.missing else 2

    @property
    def upper_corner(self) -> list[float]:
        """Largest encoded value of each coordinate; the smallest is 0."""
        return [HALF_ROOT] * self.width

    def code(self, rows: npt.NDArray[Any]) -> Codes:
        """0 for False, 1 for True, 2 for no value, shape (n,).

        Raises:
            InvalidInput: anything else. Values are never shown.
        """
        codes = np.full(len(rows), -1, dtype=np.int32)
        empty = absent(rows[:, 0])
        if self.missing:
            codes[empty] = 2
        else:
            _refuse_missing(self.name, empty)
        truths = [truth_of_word(word_of(value).strip()) for value in rows[~empty, 0].tolist()]
        codes[~empty] = [-1 if truth is None else int(truth) for truth in truths]
        _refuse_unknown(self.name, codes, "truth values")
        return codes

    def odd(self, rows: npt.NDArray[Any]) -> dict[str, int]:
        """How many cells are missing."""
        return {"missing": int((self.code(rows) == 2).sum())}

    def of_word(self, word: str) -> Any:
        """The cell of a file, or None where it is none of this column's."""
        if not word:
            return "" if self.missing else None
        return truth_of_word(word)


@dataclass(frozen=True)
class Ordered:
    """A column of categories in an order, encoded by their rank from 0 to 1.

    Attributes:
        name: of the column.
        categories: every value that may occur, lowest first.
        missing: whether a cell may hold no value; the column then takes two coordinates, as
            ``Numeric`` does.
    """

    name: str
    categories: tuple[str | float, ...]
    missing: bool = False

    kind: ClassVar[str] = "ordered"
    codes: ClassVar[bool] = False
    columns: ClassVar[int] = 1

    def __post_init__(self) -> None:
        plain = Categorical(self.name, self.categories)  # the same checks
        object.__setattr__(self, "categories", plain.categories)
        flag(self.missing, name=f"column {self.name!r}: missing")

    @property
    def width(self) -> int:
        """Encoded coordinates."""
        return 2 if self.missing else 1

    @property
    def upper_corner(self) -> list[float]:
        """Largest encoded value of each coordinate; the smallest is 0."""
        return [1.0, _MISSING_INDICATOR] if self.missing else [1.0]

    def encode(self, rows: npt.NDArray[Any]) -> Array:
        """Encoded coordinates, shape (n, width), of a column of shape (n, 1).

        Raises:
            InvalidInput: a value that is not in the list. Values are never shown.
        """
        ranks, empty = self._ranks(rows)
        unit = np.maximum(ranks, 0) / (len(self.categories) - 1)
        return _coordinates(unit, empty if self.missing else None)

    def odd(self, rows: npt.NDArray[Any]) -> dict[str, int]:
        """How many cells are missing."""
        return {"missing": int(self._ranks(rows)[1].sum())}

    def of_word(self, word: str) -> str | None:
        """The cell of a file, or None where it is none of this column's."""
        if not word and self.missing:
            return ""
        return word if word in self._positions else None

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {word_of(value): position for position, value in enumerate(self.categories)}

    def _ranks(self, rows: npt.NDArray[Any]) -> tuple[Codes, npt.NDArray[np.bool_]]:
        ranks = _positions_of(rows[:, 0], self._positions)
        strange = ranks < 0
        empty = np.zeros(len(rows), dtype=bool)
        if strange.any():
            empty[strange] = absent(rows[strange, 0])
        if not self.missing:
            _refuse_missing(self.name, empty)
        _refuse_unknown(self.name, np.where(empty, 0, ranks), "its public categories")
        return ranks, empty


@dataclass(frozen=True)
class Hashed:
    """A column of many different words or numbers, told apart by a public hash into buckets.

    Different values may share a bucket. The hash depends on the value alone, so nothing about the
    other rows, or about which values occur, is used.

    Attributes:
        name: of the column.
        buckets: how many, at least 2.
        salt: public text that enters the hash.
        missing: whether a cell may hold no value, which then has a bucket of its own.
    """

    name: str
    buckets: int
    salt: str = ""
    missing: bool = False

    kind: ClassVar[str] = "hashed"
    codes: ClassVar[bool] = True
    columns: ClassVar[int] = 1

    def __post_init__(self) -> None:
        _named(self.name)
        count(self.buckets, name=f"column {self.name!r}: buckets", minimum=2)
        flag(self.missing, name=f"column {self.name!r}: missing")
        if not isinstance(self.salt, str):
            raise InvalidParameter(f"column {self.name!r}: salt={shown(self.salt)}: expected text")

    @property
    def width(self) -> int:
        """Encoded coordinates."""
        return self.buckets + self.missing

    @property
    def upper_corner(self) -> list[float]:
        """Largest encoded value of each coordinate; the smallest is 0."""
        return [HALF_ROOT] * self.width

    def code(self, rows: npt.NDArray[Any]) -> Codes:
        """The bucket of each value of a column of shape (n, 1), shape (n,).

        Raises:
            InvalidInput: a cell without a value, where none may be.
        """
        cells = rows[:, 0]
        empty = absent(cells)
        if not self.missing:
            _refuse_missing(self.name, empty)
        codes = np.full(len(rows), self.buckets, dtype=np.int32)
        words = [word_of(value) for value in cells[~empty].tolist()]
        bucket = {word: self.bucket(word) for word in set(words)}
        codes[~empty] = [bucket[word] for word in words]
        return codes

    def bucket(self, word: str) -> int:
        """The bucket of a word."""
        key = f"{self.salt}\0{word}".encode("utf-8", "surrogatepass")
        return int.from_bytes(blake2b(key, digest_size=16).digest(), "big") % self.buckets

    def odd(self, rows: npt.NDArray[Any]) -> dict[str, int]:
        """How many cells are missing."""
        return {"missing": int(absent(rows[:, 0]).sum())}

    def of_word(self, word: str) -> str | None:
        """The cell of a file, or None where it is none of this column's."""
        return word if word or self.missing else None


def _positions_of(cells: npt.NDArray[Any], positions: dict[str, int]) -> Codes:
    """The position of every cell's word, -1 for one that has none."""

    def found(values: list[Any]) -> Codes:
        # One by one: an array of words would be as wide as the longest one, and drop NULs at
        # their ends.
        words = values if set(map(type, values)) <= {str} else map(word_of, values)
        return np.fromiter(map(positions.get, words, repeat(-1)), dtype=np.int32, count=len(values))

    if cells.dtype.kind in "fiub":  # few different numbers, mostly
        different, where = np.unique(cells, return_inverse=True)
        return np.asarray(found(different.tolist())[where])
    return found(cells.tolist())


def _coordinates(unit: Array, empty: npt.NDArray[np.bool_] | None) -> Array:
    """Values of [0, 1] as one coordinate, or as two, the second of which says "no value"."""
    unit = np.clip(unit, 0.0, 1.0)
    if empty is None:
        return np.asarray(unit[:, None])
    return np.stack([np.where(empty, 0.5, unit), np.where(empty, _MISSING_INDICATOR, 0.0)], axis=1)


def _beyond(
    values: Array, empty: npt.NDArray[np.bool_], lower: float, upper: float
) -> dict[str, int]:
    return {
        "missing": int(empty.sum()),
        "below": int((~empty & (values < lower)).sum()),
        "above": int((~empty & (values > upper)).sum()),
    }


def _refuse_missing(name: str, empty: npt.NDArray[np.bool_]) -> None:
    if empty.any():
        raise InvalidInput(
            f"column {name!r}: {int(empty.sum())} of {len(empty)} values are missing (NaN, None or "
            "NaT), and the schema has no code for a missing value; declare one"
        )


def _refuse_unknown(name: str, codes: npt.NDArray[np.integer[Any]], what: str) -> None:
    unknown = int((codes < 0).sum())
    if unknown:
        raise InvalidInput(
            f"column {name!r}: {unknown} of {len(codes)} values are not among {what}"
        )


def _named(name: Any) -> None:
    if not isinstance(name, str):
        raise InvalidParameter(f"name={shown(name)}: expected the name of a column")
