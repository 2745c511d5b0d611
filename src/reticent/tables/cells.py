"""Cells of a table: those that are missing, the reading of numbers, instants and truth values, and
refusals.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Booleans
from reticent.core.checks import shown
from reticent.core.coded_rows import Codes
from reticent.core.errors import InvalidInput, InvalidParameter

_INSTANT = re.compile(
    r"\d{4}-\d{2}(-\d{2})?([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:?\d{2})?)?", re.ASCII
)
_TRUE, _FALSE = ("true", "1", "1.0", "yes"), ("false", "0", "0.0", "no")
_NO_VALUE = frozenset({"NAType", "NaTType"})


def word_of(value: Any) -> str:
    """Return one spelling of a category, the same for 3, 3.0 and numpy's own numbers.

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
        # Python writes no integers of more than 4300 digits, and a caller's own class may
        # raise anything.
        return f"<{type(value).__name__} that cannot be written>"


def absent(cells: npt.NDArray[Any]) -> Booleans:
    """Return True for cells without a value: None, NaN, NaT, pandas' NA or an empty word.

    Args:
        cells: shape (n,), of any type.

    Example:
        >>> absent(np.array([None, float("nan"), "", "x", 0], dtype=object)).tolist()
        [True, True, True, False, False]
    """
    if cells.dtype.kind == "f":
        return np.asarray(np.isnan(cells))
    if cells.dtype.kind in "mM":
        return np.asarray(np.isnat(cells))
    if cells.dtype.kind in "iub":
        return np.zeros(len(cells), dtype=bool)
    if cells.dtype.kind in "US":
        return np.asarray(cells == cells.dtype.type())
    return np.fromiter(map(_no_value, cells.tolist()), dtype=bool, count=len(cells))


def numbers(cells: npt.NDArray[Any], *, name: str) -> Array:
    """Return cells as float64, NaN where there is no value.

    Raises:
        InvalidInput: a cell is infinite or no number. Values are never shown.
    """
    if cells.dtype.kind == "O":
        empty = absent(cells)
        cells = np.where(empty, np.nan, cells)
    try:
        values = np.asarray(cells, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(
            f"{name}: expected real numbers, got entries that are not numbers, or beyond 1.8e308"
        ) from None
    infinite = int(np.isinf(values).sum())
    if infinite:
        raise InvalidInput(
            f"{name}: contains infinity ({infinite} of {values.size} values are not finite)"
        )
    return values


def instants(cells: npt.NDArray[Any], *, name: str) -> Array:
    """Return cells as microseconds since 1970, NaN where there is no value.

    Args:
        cells: numpy's, Python's or pandas' dates and times, or ISO 8601 texts, shape (n,). Those
            with a time zone are moved to UTC, those without are taken as they are.
        name: the caller's name of the cells, used in messages.

    Raises:
        InvalidInput: a cell is no date or time. Values are never shown.

    Example:
        >>> instants(np.array(["1970-01-02", None], dtype=object), name="day").tolist()
        [86400000000.0, nan]
    """
    if cells.dtype.kind == "M":
        times = cells.astype("datetime64[us]")
        return np.where(np.isnat(times), np.nan, times.astype(np.int64).astype(np.float64))
    found = np.empty(len(cells))
    wrong = 0
    for place, value in enumerate(cells.tolist()):
        instant = _instant(value)
        wrong += instant is None
        found[place] = np.nan if instant is None else instant
    if wrong:
        raise InvalidInput(
            f"{name}: {wrong} of {len(cells)} values are no dates or times; expected datetime "
            "values, or ISO 8601 texts such as 2024-05-31 or 2024-05-31T08:00"
        )
    return found


def instant_of_word(word: str) -> float | None:
    """Return the microseconds since 1970 of an ISO 8601 text, or None."""
    if not _INSTANT.fullmatch(word):
        return None
    text = f"{word}-01" if len(word) == 7 else word
    try:
        return _microseconds(datetime.fromisoformat(text))
    except ValueError:
        return None


def truth_of_word(word: str) -> bool | None:
    """Return the meaning of "true", "yes", "1", "false", "no", "0", in upper or lower case, or
    None.
    """
    low = word.lower()
    return True if low in _TRUE else False if low in _FALSE else None


def positions_of(cells: npt.NDArray[Any], positions: dict[str, int]) -> Codes:
    """Return the position of every cell's word, -1 for one that has none."""

    def found(values: list[Any]) -> Codes:
        # One by one: an array of words would be as wide as the longest one, and drop NULs at
        # their ends.
        words = values if set(map(type, values)) <= {str} else map(word_of, values)
        return np.fromiter(map(positions.get, words, repeat(-1)), dtype=np.int32, count=len(values))

    if cells.dtype.kind in "fiub":  # few different numbers, mostly
        different, where = np.unique(cells, return_inverse=True)
        return np.asarray(found(different.tolist())[where])
    return found(cells.tolist())


def beyond(
    values: Array, empty: npt.NDArray[np.bool_], lower: float, upper: float
) -> dict[str, int]:
    """Count the values that are missing, below or above a range."""
    return {
        "missing": int(empty.sum()),
        "below": int((~empty & (values < lower)).sum()),
        "above": int((~empty & (values > upper)).sum()),
    }


def refuse_missing(name: str, empty: npt.NDArray[np.bool_]) -> None:
    """Refuse a column with cells that hold no value.

    Raises:
        InvalidInput: some cells hold none. The message says how many.
    """
    if empty.any():
        raise InvalidInput(
            f"column {name!r}: {int(empty.sum())} of {len(empty)} values are missing (NaN, None or "
            "NaT), and the schema has no code for a missing value; declare one"
        )


def refuse_unknown(name: str, codes: npt.NDArray[np.integer[Any]], what: str) -> None:
    """Refuse a column with codes below 0, which stand for unknown values.

    Raises:
        InvalidInput: some codes are unknown. The message says how many and never shows values.
    """
    unknown = int((codes < 0).sum())
    if unknown:
        raise InvalidInput(
            f"column {name!r}: {unknown} of {len(codes)} values are not among {what}"
        )


def check_name(name: Any) -> None:
    """Refuse anything that is no name of a column.

    Raises:
        InvalidParameter: it is no text.
    """
    if not isinstance(name, str):
        raise InvalidParameter(f"name={shown(name)}: expected the name of a column")


def _instant(value: Any) -> float | None:
    if _no_value(value):
        return float("nan")
    if isinstance(value, str):
        return instant_of_word(value.strip())
    if isinstance(value, datetime):
        return _microseconds(value)
    if isinstance(value, date):
        return _microseconds(datetime(value.year, value.month, value.day))
    if isinstance(value, np.datetime64):
        return float(value.astype("datetime64[us]").astype(np.int64))
    return None


def _microseconds(time: datetime) -> float:
    plain = time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)
    gap = plain - datetime(1970, 1, 1)
    return float((gap.days * 86_400 + gap.seconds) * 1_000_000 + gap.microseconds)


def _no_value(value: Any) -> bool:
    if value is None or type(value) is str:
        return not value
    if isinstance(value, (float, np.floating)):
        return bool(value != value)
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    return type(value).__name__ in _NO_VALUE
