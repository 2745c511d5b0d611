"""Attributes that are encoded by a number from 0 to 1, and a second one for "no value"."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.checks import flag, one_of, real, shown
from reticent.core.coded_rows import Codes
from reticent.core.errors import InvalidParameter
from reticent.tables.cells import (
    absent,
    beyond,
    check_name,
    instant_of_word,
    instants,
    numbers,
    positions_of,
    refuse_missing,
    refuse_unknown,
    word_of,
)
from reticent.tables.code_attributes import Categorical

_MISSING_INDICATOR = math.sqrt(
    0.75
)  # this double lies below the root; with 1/2, a missing number is at most 1 from any other

_LEAST_SPAN = 2.0**-1022  # below it doubles lose digits


class _Number:
    """The shared part of the kinds of numbers: one coordinate, and a second one where a value may
    miss.
    """

    codes: ClassVar[bool] = False
    columns: ClassVar[int] = 1
    missing: Any

    @property
    def width(self) -> int:
        """The number of encoded coordinates."""
        return len(self.upper_corner)

    @property
    def upper_corner(self) -> list[float]:
        """The largest encoded value of each coordinate. The smallest is 0."""
        return [1.0] if self.missing is None or self.missing is False else [1.0, _MISSING_INDICATOR]


@dataclass(frozen=True)
class Numeric(_Number):
    """A column of numbers, encoded linearly (or by its logarithm) from its public range to [0, 1].

    Values outside the range are clipped to its ends. A clip moves no two values apart.

    Attributes:
        name: the name of the column.
        lower, upper: public range, in the column's units. lower < upper, and the doubles hold upper
            - lower.
        scale: "linear", or "log" for log(1 + value - lower).
        missing: the number that stands for "no value", or None where every value must be there.
            With a number the column takes two coordinates. A missing value is 1/2 and sqrt(3/4), at
            most 1 from any other.
    """

    name: str
    lower: float
    upper: float
    scale: str = "linear"
    missing: float | None = None

    kind: ClassVar[str] = "numeric"

    def __post_init__(self) -> None:
        check_name(self.name)
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

    def encode(self, rows: npt.NDArray[Any]) -> Array:
        """Return encoded coordinates, shape (n, width), of a column of shape (n, 1)."""
        values, empty = self._values(rows)
        clipped = np.clip(values, self.lower, self.upper) - self.lower
        span = self.upper - self.lower
        unit = clipped / span if self.scale == "linear" else np.log1p(clipped) / math.log1p(span)
        return _coordinates(unit, None if self.missing is None else empty)

    def odd(self, rows: npt.NDArray[Any]) -> dict[str, int]:
        """Count the cells that are missing, below or above the public range."""
        values, empty = self._values(rows)
        return beyond(values, empty, self.lower, self.upper)

    def _values(self, rows: npt.NDArray[Any]) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Return the numbers, those that are missing at the lower end, and which are missing."""
        values = numbers(rows[:, 0], name=f"column {self.name!r}")
        empty = np.isnan(values)
        if self.missing is None:
            refuse_missing(self.name, empty)
        else:
            empty |= values == self.missing
        return np.where(empty, self.lower, values), empty


@dataclass(frozen=True)
class Instant(_Number):
    """A column of dates, or dates and times, encoded linearly from its public range to [0, 1].

    Values with a time zone are moved to UTC. Values outside the range are moved to its ends.

    Attributes:
        name: the name of the column.
        lower, upper: public range as ISO 8601 texts, lower < upper.
        missing: True if a cell may hold no value. The column then takes two coordinates, as
            ``Numeric`` does.
    """

    name: str
    lower: str
    upper: str
    missing: bool = False

    kind: ClassVar[str] = "instant"

    def __post_init__(self) -> None:
        check_name(self.name)
        flag(self.missing, name=f"column {self.name!r}: missing")
        ends = [instant_of_word(end) if isinstance(end, str) else None for end in self._texts]
        if None in ends or not ends[0] < ends[1]:  # type: ignore[operator]
            raise InvalidParameter(
                f"column {self.name!r}: lower={shown(self.lower)}, upper={shown(self.upper)}: "
                "expected ISO 8601 texts, lower < upper"
            )

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The range in microseconds since 1970."""
        lower, upper = (instant_of_word(end) for end in self._texts)
        assert lower is not None  # checked when it was made
        assert upper is not None
        return lower, upper

    def encode(self, rows: npt.NDArray[Any]) -> Array:
        """Return encoded coordinates, shape (n, width), of a column of shape (n, 1)."""
        times, empty = self._values(rows)
        lower, upper = self.ends
        unit = (np.clip(times, lower, upper) - lower) / (upper - lower)
        return _coordinates(unit, empty if self.missing else None)

    def odd(self, rows: npt.NDArray[Any]) -> dict[str, int]:
        """Count the cells that are missing, below or above the public range."""
        return beyond(*self._values(rows), *self.ends)

    def of_word(self, word: str) -> str | None:
        """Return the cell of a file, or None where it is none of this column's."""
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
            refuse_missing(self.name, empty)
        return np.where(empty, self.ends[0], times), empty


@dataclass(frozen=True)
class Ordered(_Number):
    """A column of categories in an order, encoded by their rank from 0 to 1.

    Attributes:
        name: the name of the column.
        categories: every value that may occur, lowest first.
        missing: True if a cell may hold no value. The column then takes two coordinates, as
            ``Numeric`` does.
    """

    name: str
    categories: tuple[str | float, ...]
    missing: bool = False

    kind: ClassVar[str] = "ordered"

    def __post_init__(self) -> None:
        plain = Categorical(self.name, self.categories)  # the same checks
        object.__setattr__(self, "categories", plain.categories)
        flag(self.missing, name=f"column {self.name!r}: missing")

    def encode(self, rows: npt.NDArray[Any]) -> Array:
        """Return encoded coordinates, shape (n, width), of a column of shape (n, 1).

        Raises:
            InvalidInput: a value is not in the list. Values are never shown.
        """
        ranks, empty = self._ranks(rows)
        unit = np.maximum(ranks, 0) / (len(self.categories) - 1)
        return _coordinates(unit, empty if self.missing else None)

    def odd(self, rows: npt.NDArray[Any]) -> dict[str, int]:
        """Count the cells that are missing."""
        return {"missing": int(self._ranks(rows)[1].sum())}

    def of_word(self, word: str) -> str | None:
        """Return the cell of a file, or None where it is none of this column's."""
        if not word and self.missing:
            return ""
        return word if word in self._positions else None

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {word_of(value): position for position, value in enumerate(self.categories)}

    def _ranks(self, rows: npt.NDArray[Any]) -> tuple[Codes, npt.NDArray[np.bool_]]:
        ranks = positions_of(rows[:, 0], self._positions)
        strange = ranks < 0
        empty = np.zeros(len(rows), dtype=bool)
        if strange.any():
            empty[strange] = absent(rows[strange, 0])
        if not self.missing:
            refuse_missing(self.name, empty)
        refuse_unknown(self.name, np.where(empty, 0, ranks), "its public categories")
        return ranks, empty


def _coordinates(unit: Array, empty: npt.NDArray[np.bool_] | None) -> Array:
    """Return values of [0, 1] as one coordinate, or as two, the second of which says "no value"."""
    unit = np.clip(unit, 0.0, 1.0)
    if empty is None:
        return np.asarray(unit[:, None])
    return np.stack([np.where(empty, 0.5, unit), np.where(empty, _MISSING_INDICATOR, 0.0)], axis=1)
