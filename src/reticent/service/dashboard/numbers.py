"""Numbers and times as the pages show them."""

from __future__ import annotations

from datetime import UTC, datetime

_MICROSECONDS = 1_000_000
_MANY = 1_000_000


def whole(value: int) -> str:
    """Return a count, with a comma for every thousand.

    Example:
        >>> whole(1234567)
        '1,234,567'
    """
    return f"{value:,}"


def answers_left(value: int) -> str:
    """Say in words how many answers still fit.

    Example:
        >>> answers_left(1), answers_left(0), answers_left(2**40)
        ('1 more answer', 'no more answers', 'over a million more answers')
    """
    if value <= 0:
        return "no more answers"
    if value > _MANY:
        return "over a million more answers"
    return f"{whole(value)} more answer{'s' if value != 1 else ''}"


def moment(microseconds: int) -> str:
    """Return a time since 1970 as UTC.

    Example:
        >>> moment(0)
        '1970-01-01 00:00:00'
    """
    return datetime.fromtimestamp(microseconds / _MICROSECONDS, UTC).strftime("%Y-%m-%d %H:%M:%S")
