"""Attributes that are encoded by which of their coordinates holds the one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from reticent.core.checks import count, finite_array, flag, shown
from reticent.core.coded_rows import Codes
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.tables.cells import (
    absent,
    check_name,
    positions_of,
    refuse_missing,
    refuse_unknown,
    truth_of_word,
    word_of,
)

HALF_ROOT = math.nextafter(math.sqrt(0.5), 0.0)
"""Value of the one in a one-hot code, the root of 1/2 from below: two different categories are 1
apart in l2, and not more.
"""

_ROWS_AT_ONCE = 8192  # so that a wide one-hot table is not copied as a whole


class _Coded:
    """The shared part of the kinds of codes: one of their coordinates holds the one."""

    codes: ClassVar[bool] = True

    @property
    def width(self) -> int:
        """The number of encoded coordinates."""
        raise NotImplementedError

    @property
    def upper_corner(self) -> list[float]:
        """The largest encoded value of each coordinate. The smallest is 0."""
        return [HALF_ROOT] * self.width


@dataclass(frozen=True)
class Categorical(_Coded):
    """A column of words or numbers from a public list, encoded one-hot with the value sqrt(1/2).

    Attributes:
        name: the name of the column.
        categories: every value that may occur. A missing value is one of them ("?"), or may not
            occur.
        other: the category that stands for any value not in the list. With None such values are
            refused.
        missing: the category that stands for "no value" (None, NaN, NaT, an empty cell). With None
            it is ``other``, where there is one, or refused.
    """

    name: str
    categories: tuple[str | float, ...]
    other: str | float | None = None
    missing: str | float | None = None

    kind: ClassVar[str] = "categorical"
    columns: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_name(self.name)
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
        """The number of encoded coordinates."""
        return len(self.categories)

    def code(self, rows: npt.NDArray[Any]) -> Codes:
        """Return the position in the list of each value of a column of shape (n, 1), shape (n,).

        Raises:
            InvalidInput: a value is not in the list, and there is no ``other``. Values are never
                shown.
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
        """Count the cells that are missing, and those that are unknown."""
        _, counts = self._codes(rows)
        return counts

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {word_of(value): position for position, value in enumerate(self.categories)}

    def _codes(self, rows: npt.NDArray[Any]) -> tuple[Codes, dict[str, int]]:
        """Return positions, -1 for values that are refused, and the counts of missing and unknown
        values.
        """
        codes = positions_of(rows[:, 0], self._positions)
        fallback = -1 if self.other is None else self._positions[word_of(self.other)]
        none = fallback if self.missing is None else self._positions[word_of(self.missing)]
        strange = codes < 0
        empty = np.zeros(len(rows), dtype=bool)
        if strange.any():
            empty[strange] = absent(rows[strange, 0])
        codes[strange] = np.where(empty[strange], none, fallback)
        return codes, {"missing": int(empty.sum()), "unknown": int((strange & ~empty).sum())}


@dataclass(frozen=True)
class OneHot(_Coded):
    """One attribute that stands in the table as several 0/1 columns, exactly one of which is 1.

    Attributes:
        name: the name of the attribute.
        names: the names of its columns.
    """

    name: str
    names: tuple[str, ...]

    kind: ClassVar[str] = "one-hot"

    def __post_init__(self) -> None:
        check_name(self.name)
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
        """The number of columns of the table."""
        return len(self.names)

    @property
    def width(self) -> int:
        """The number of encoded coordinates."""
        return len(self.names)

    def code(self, rows: npt.NDArray[Any]) -> Codes:
        """Return the column that holds the one, for each row of columns of shape (n, width), shape
        (n,).

        Raises:
            InvalidInput: a row has another number of ones than one. Values are never shown.
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
        """Return no counts, because a row that is not one-hot is refused."""
        self.code(rows)
        return {}


@dataclass(frozen=True)
class Truth(_Coded):
    """A column of truth values, encoded one-hot: False, True and, where it may be, no value.

    True and False may be written as truth values, as 1 and 0, or as the words true and false, yes
    and no.

    Attributes:
        name: the name of the column.
        missing: True if a cell may hold no value.
    """

    name: str
    missing: bool = False

    kind: ClassVar[str] = "truth"
    columns: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_name(self.name)
        flag(self.missing, name=f"column {self.name!r}: missing")

    @property
    def width(self) -> int:
        """The number of encoded coordinates."""
        return 3 if self.missing else 2

    def code(self, rows: npt.NDArray[Any]) -> Codes:
        """Return 0 for False, 1 for True, 2 for no value, shape (n,).

        Raises:
            InvalidInput: a cell is anything else. Values are never shown.
        """
        codes = np.full(len(rows), -1, dtype=np.int32)
        empty = absent(rows[:, 0])
        if self.missing:
            codes[empty] = 2
        else:
            refuse_missing(self.name, empty)
        truths = [truth_of_word(word_of(value).strip()) for value in rows[~empty, 0].tolist()]
        codes[~empty] = [-1 if truth is None else int(truth) for truth in truths]
        refuse_unknown(self.name, codes, "truth values")
        return codes

    def odd(self, rows: npt.NDArray[Any]) -> dict[str, int]:
        """Count the cells that are missing."""
        return {"missing": int((self.code(rows) == 2).sum())}

    def of_word(self, word: str) -> Any:
        """Return the cell of a file, or None where it is none of this column's."""
        if not word:
            return "" if self.missing else None
        return truth_of_word(word)


@dataclass(frozen=True)
class Hashed(_Coded):
    """A column of many different words or numbers, told apart by a public hash into buckets.

    Different values may share a bucket. The hash depends on the value alone, so nothing about the
    other rows, or about which values occur, is used.

    Attributes:
        name: the name of the column.
        buckets: the number of buckets, at least 2.
        salt: public text that enters the hash.
        missing: True if a cell may hold no value, which then has a bucket of its own.
    """

    name: str
    buckets: int
    salt: str = ""
    missing: bool = False

    kind: ClassVar[str] = "hashed"
    columns: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_name(self.name)
        count(self.buckets, name=f"column {self.name!r}: buckets", minimum=2)
        flag(self.missing, name=f"column {self.name!r}: missing")
        if not isinstance(self.salt, str):
            raise InvalidParameter(f"column {self.name!r}: salt={shown(self.salt)}: expected text")

    @property
    def width(self) -> int:
        """The number of encoded coordinates."""
        return self.buckets + self.missing

    def code(self, rows: npt.NDArray[Any]) -> Codes:
        """Return the bucket of each value of a column of shape (n, 1), shape (n,).

        Raises:
            InvalidInput: a cell holds no value, where none may be missing.
        """
        cells = rows[:, 0]
        empty = absent(cells)
        if not self.missing:
            refuse_missing(self.name, empty)
        codes = np.full(len(rows), self.buckets, dtype=np.int32)
        words = [word_of(value) for value in cells[~empty].tolist()]
        bucket = {word: self.bucket(word) for word in set(words)}
        codes[~empty] = [bucket[word] for word in words]
        return codes

    def bucket(self, word: str) -> int:
        """Return the bucket of a word."""
        key = f"{self.salt}\0{word}".encode("utf-8", "surrogatepass")
        return int.from_bytes(blake2b(key, digest_size=16).digest(), "big") % self.buckets

    def odd(self, rows: npt.NDArray[Any]) -> dict[str, int]:
        """Count the cells that are missing."""
        return {"missing": int(absent(rows[:, 0]).sum())}

    def of_word(self, word: str) -> str | None:
        """Return the cell of a file, or None where it is none of this column's."""
        return word if word or self.missing else None
