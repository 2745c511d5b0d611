"""Budgets as integers: micro-epsilon and pico-delta, costs rounded up and grants rounded down."""

from __future__ import annotations

import math
from fractions import Fraction

from reticent.core.checks import count, positive, probability
from reticent.core.errors import InvalidParameter

EPSILON_UNIT = 1_000_000
"""Units in an epsilon of 1: micro-epsilon."""

DELTA_UNIT = 1_000_000_000_000
"""Units in a delta of 1: pico-delta, 1e-12 each."""

LARGEST = 2**62
"""No cost or grant is larger than this many units, so that sums of two stay within 64 bits."""


def epsilon_cost(epsilon: float, *, answers: int) -> int:
    """Micro-epsilon that ``answers`` answers of ``epsilon`` cost, rounded up once for the whole
    call.

    A float stands for its shortest decimal, so ten answers of 0.1 cost exactly 1.

    Example:
        >>> epsilon_cost(0.1, answers=10), epsilon_cost(1e-9, answers=1)
        (1000000, 1)
    """
    return _units(
        count(answers, name="answers") * Fraction(repr(positive(epsilon, name="epsilon"))),
        EPSILON_UNIT,
        "epsilon",
    )


def delta_cost(delta: float, *, answers: int) -> int:
    """Pico-delta that ``answers`` answers of ``delta`` cost, rounded up once for the whole call.

    Example:
        >>> delta_cost(1e-5, answers=3), delta_cost(0.0, answers=3), delta_cost(1e-15, answers=1)
        (30000000, 0, 1)
    """
    return _units(
        count(answers, name="answers") * Fraction(repr(probability(delta, name="delta"))),
        DELTA_UNIT,
        "delta",
    )


def epsilon_grant(epsilon: float) -> int:
    """Micro-epsilon in a grant of ``epsilon``, rounded down.

    Raises:
        InvalidParameter: less than one unit.

    Example:
        >>> epsilon_grant(2.5)
        2500000
    """
    units = -_units(-Fraction(repr(positive(epsilon, name="epsilon"))), EPSILON_UNIT, "epsilon")
    if units == 0:
        raise InvalidParameter(
            f"epsilon={epsilon!r}: expected at least 1e-6, the smallest amount that a ledger holds"
        )
    return units


def delta_grant(delta: float) -> int:
    """Pico-delta in a grant of ``delta``, rounded down; less than 1e-12 is nothing.

    Example:
        >>> delta_grant(1e-5)
        10000000
    """
    return -_units(-Fraction(repr(probability(delta, name="delta"))), DELTA_UNIT, "delta")


def epsilon_value(units: int) -> float:
    """Epsilon of ``units`` micro-epsilon, for people to read."""
    return units / EPSILON_UNIT


def delta_value(units: int) -> float:
    """Delta of ``units`` pico-delta, for people to read."""
    return units / DELTA_UNIT


def _units(value: Fraction, unit: int, name: str) -> int:
    units = math.ceil(value * unit)
    if abs(units) > LARGEST:
        raise InvalidParameter(
            f"{name}: {float(abs(value)):g} in total is more than a ledger can hold "
            f"({LARGEST / unit:g})"
        )
    return units
