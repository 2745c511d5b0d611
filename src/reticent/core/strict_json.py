"""JSON for files that anyone may have edited, with one spelling for every value and nothing beyond
the standard.
"""

from __future__ import annotations

import json
import math
from json.encoder import encode_basestring_ascii
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
    return f"{_spelled(value, 1)}\n".encode()


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
        return bool(text.encode())
    except UnicodeEncodeError:
        return False


def _spelled(value: Any, level: int) -> str:
    """Return the one spelling of a value whose parts are on this level.

    The encoder of the standard library takes five times as long where it indents.
    """
    if isinstance(value, str):  # first, since most are
        if not value.isascii() and not _has_bytes(value):
            raise InvalidInput("JSON: expected text without half characters")
        return encode_basestring_ascii(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if abs(value) > LARGEST_INTEGER:
            raise InvalidInput(f"JSON: expected integers up to {LARGEST_INTEGER} in absolute value")
        return int.__repr__(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInput("JSON: expected finite numbers")
        return float.__repr__(value)
    if not isinstance(value, (dict, list, tuple)):
        raise InvalidInput(f"JSON: expected plain values, got {type(value).__name__}")
    if value and level >= DEEPEST:
        raise InvalidInput(f"JSON: expected at most {DEEPEST} levels of nesting")
    named = isinstance(value, dict)
    if named and not all(issubclass(kind, str) for kind in {*map(type, value)}):
        raise InvalidInput("JSON: expected texts as keys")
    parts = (
        [f"{_spelled(key, level)}: {_spelled(value[key], level + 1)}" for key in sorted(value)]
        if named
        else [_spelled(part, level + 1) for part in value]
    )
    start, end = "{}" if named else "[]"
    if not parts:
        return start + end
    line = "\n" + "  " * level
    return f"{start}{line}{f',{line}'.join(parts)}{line[:-2]}{end}"
