"""JSON for files that anyone may have edited, with one spelling for every value and nothing beyond
the standard.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from reticent.core.errors import InvalidInput

DEEPEST = 64
"""Largest number of levels that lists and objects may be nested."""

LARGEST_INTEGER = 2**64 - 1
"""Largest absolute value of an integer."""


def strict_dumps(value: Any) -> bytes:
    """Return the one spelling of ``value``: keys sorted, indented by two, no NaN and no infinity, a
    line feed at the end.

    Raises:
        InvalidInput: a value that JSON does not have, or that ``strict_loads`` would refuse.

    Example:
        >>> strict_dumps({"b": 1, "a": None})
        b'{\\n  "a": null,\\n  "b": 1\\n}\\n'
    """
    _check(value)
    try:
        return json.dumps(value, indent=2, sort_keys=True, allow_nan=False).encode() + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"JSON: expected plain finite values ({type(error).__name__})"
        ) from error


def strict_loads(content: bytes) -> Any:
    """Return the value that ``strict_dumps`` wrote. Refuse all other bytes.

    Every byte counts. Another spelling of the same value is refused, and so are repeated keys, NaN,
    infinities, numbers beyond 64 bits and deep nesting.

    Raises:
        InvalidInput: other bytes than ``strict_dumps`` gives for the same value.

    Example:
        >>> strict_loads(strict_dumps({"a": [1, 2.5]}))
        {'a': [1, 2.5]}
    """
    try:
        value = json.loads(content.decode(), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"JSON: damaged, or nested too deeply ({type(error).__name__})"
        ) from error
    if strict_dumps(value) != content:
        raise InvalidInput(
            "JSON: expected keys in order, each once, and the spelling that reticent writes"
        )
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _has_bytes(text: str) -> bool:
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def _check(value: Any) -> None:
    """Refuse depth and numbers beyond their limits, without recursion."""
    level = [value]
    for _ in range(DEEPEST):
        deeper: list[Any] = []
        for entry in level:
            if isinstance(entry, str):  # first, since most are
                if not _has_bytes(entry):
                    raise InvalidInput("JSON: expected text without half characters")
            elif isinstance(entry, dict):
                deeper += entry
                deeper += entry.values()
            elif isinstance(entry, (list, tuple)):
                deeper += entry
            elif isinstance(entry, int) and abs(entry) > LARGEST_INTEGER:
                raise InvalidInput(
                    f"JSON: expected integers up to {LARGEST_INTEGER} in absolute value"
                )
            elif isinstance(entry, float) and not math.isfinite(entry):
                raise InvalidInput("JSON: expected finite numbers")
        if not deeper:
            return
        level = deeper
    raise InvalidInput(f"JSON: expected at most {DEEPEST} levels of nesting")
