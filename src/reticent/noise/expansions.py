"""Binary expansions of real numbers: floor(2^bits t) in integers, never off by one.

A comparison of a uniform real with a threshold t reads both digit by digit, so it needs the digits
of t and nothing else. Thresholds are made of exponentials of rational numbers. Each is enclosed
between two integers at some precision. Every step of the lower bound is rounded down and every step
of the upper bound is rounded up. Where the two do not settle the digits that are asked for, the
precision is doubled.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Words = Callable[[int], npt.NDArray[np.uint64]]
"""A function that returns ``count`` independent uniform 64-bit words, in an array that is the
caller's own.
"""

_GUARD = 32
"""Bits beyond those asked for. An enclosure is a few hundred units wide, so one precision settles
nearly all digits.
"""


class Thresholds(ABC):
    """Real numbers t_1 <= ... <= t_m in [0, 1], known by their binary digits."""

    @abstractmethod
    def floors(self, bits: int) -> list[int]:
        """Return floor(2^bits t_i) for each i, exact."""

    def settle(self, prefix: int, bits: int, words: Words) -> int:
        """Return the number of thresholds that are at most u, for u uniform in the cell [prefix,
        prefix + 1) 2^-bits.

        A threshold whose first ``bits`` digits are smaller than ``prefix`` lies below the cell, one
        whose digits are larger lies above it. Only where they are equal is u given 64 more digits.

        Args:
            prefix: the known digits of u.
            bits: number of known digits.
            words: source of the further digits.
        """
        while True:
            floors = self.floors(bits)
            below = bisect_right(floors, prefix)
            if not below or floors[below - 1] != prefix:
                return below
            more = words(1)
            prefix, bits = prefix << 64 | int(more[0]), bits + 64
            more.fill(0)


class EnclosedThresholds(Thresholds):
    """Thresholds of which integer bounds can be computed at any precision.

    Each is irrational or enclosed exactly, or else ``floors`` would double its precision for ever.
    """

    @abstractmethod
    def enclosures(self, precision: int) -> list[tuple[int, int]]:
        """Return integers (low, high) with low <= 2^precision t_i <= high. The last equality holds
        only where t_i is known exactly.
        """

    def floors(self, bits: int) -> list[int]:
        """Return floor(2^bits t_i) for each i, exact."""
        precision = bits + _GUARD
        while True:
            shift = precision - bits
            bounds = self.enclosures(precision)
            # An irrational t_i lies strictly below `high`, so its digits are at most those of
            # `high` - 1.
            floors = [low >> shift for low, high in bounds]
            if all(
                low == high or (high - 1) >> shift == floor
                for (low, high), floor in zip(bounds, floors, strict=True)
            ):
                return floors
            precision *= 2


@dataclass(frozen=True)
class Exponential(EnclosedThresholds):
    """The one threshold exp(-numerator/denominator).

    It is irrational for every positive rational exponent (Lindemann), and 1 for the exponent 0.

    Attributes:
        numerator: at least 0.
        denominator: at least 1.

    Example:
        >>> Exponential(1, 1).floors(16)
        [24109]
    """

    numerator: int
    denominator: int

    def enclosures(self, precision: int) -> list[tuple[int, int]]:
        """Return bounds on 2^precision exp(-numerator/denominator)."""
        return [exponential_bounds(self.numerator, self.denominator, precision)]


@dataclass(frozen=True)
class Quotient(Thresholds):
    """The one threshold numerator/denominator, in [0, 1].

    Example:
        >>> Quotient(2, 3).floors(4)
        [10]
    """

    numerator: int
    denominator: int

    def floors(self, bits: int) -> list[int]:
        """Return floor(2^bits numerator/denominator)."""
        return [(self.numerator << bits) // self.denominator]


@dataclass(frozen=True)
class GeometricShares(EnclosedThresholds):
    """Partial sums of a geometric distribution on 0 .. size - 1. These thresholds cut [0, 1] into
    its probabilities.

    With r = exp(-numerator/denominator), symbol v has weight r^v. Two variants have more symbols,
    in this order:

    - ``signed``: v = 0 .. size - 1, then once more with a factor ``sign_ratio`` each, for a
      negative number.
    - ``open``: v = 0 .. size - 1, then one symbol "size or more" of weight r^size / (1 - r).

    Symbol i is the number of thresholds at most u, for u uniform. A partial sum over the total is a
    rational function of r (and of r^k for a whole k) that is not constant. Since r is
    transcendental, the quotient is irrational.

    Attributes:
        numerator, denominator: the exponent's, both at least 1.
        size: number of magnitudes, at least 1.
        signed: whether each magnitude comes with a sign, the negative one
            exp(-numerator/denominator) times as often.
        open: whether there is a symbol for "size or more", not allowed together with ``signed``.

    Example: one binary digit is 0 with probability 1/(1 + e^-1) = 0.7311 if the exponent is 1.
        >>> GeometricShares(1, 1, size=2).floors(16)
        [47910]
    """

    numerator: int
    denominator: int
    size: int
    signed: bool = False
    open: bool = False

    def enclosures(self, precision: int) -> list[tuple[int, int]]:
        """Return bounds on 2^precision times each partial sum."""
        low, high = self._weights(precision)
        total_low, total_high = sum(low), sum(high)
        bounds, below_low, below_high = [], 0, 0
        for least, most in zip(low[:-1], high[:-1], strict=True):
            below_low += least
            below_high += most
            # below/(below + above) grows with below and falls with above.
            bounds.append(
                (
                    (below_low << precision) // (below_low + total_high - below_high),
                    _quotient_up(below_high << precision, below_high + total_low - below_low),
                )
            )
        return bounds

    def _weights(self, precision: int) -> tuple[list[int], list[int]]:
        """Return bounds on the weight of each symbol, all in one unit of at most 2^-precision."""
        # The extra bits keep the digits of 1 - r where r is close to 1.
        work = precision + max(0, self.denominator.bit_length() - self.numerator.bit_length() + 2)
        one = 1 << work
        ratio_low, ratio_high = exponential_bounds(self.numerator, self.denominator, work)
        low, high = [one], [one]
        for _ in range(self.size):
            low.append(low[-1] * ratio_low >> work)
            high.append(_shift_up(high[-1] * ratio_high, work))
        beyond_low, beyond_high = low.pop(), high.pop()
        if self.signed:
            low += [value * ratio_low >> work for value in low]
            high += [_shift_up(value * ratio_high, work) for value in high]
        if self.open:
            low.append((beyond_low << work) // (one - ratio_low))
            high.append(_quotient_up(beyond_high << work, one - ratio_high))
        return low, high


def exponential_bounds(numerator: int, denominator: int, precision: int) -> tuple[int, int]:
    """Return integers low <= 2^precision exp(-numerator/denominator) <= high, a few units apart.

    x = numerator/denominator is halved h times to y < 1/2. In e^y = sum of y^i/i! every term is
    positive, so the floors of the terms add up to a lower bound. Their ceilings add up to an upper
    bound, with the last one counted again for the terms left out (each further term is at most half
    of the one before it). The reciprocals bound e^-y, and h squarings, rounded outwards, e^-x.

    Args:
        numerator: at least 0.
        denominator: at least 1.
        precision: bits, at least 1.

    Returns:
        (2^precision, 2^precision) if the exponent is 0. Otherwise the exact value lies strictly
        between the bounds.

    Example:
        >>> low, high = exponential_bounds(1, 1, 64)
        >>> (low, high - low < 4)
        (6786177901268885274, True)
    """
    if numerator == 0:
        return 1 << precision, 1 << precision
    if numerator >= (precision + 1) * denominator:
        return 0, 1  # e^-x < 2^-x
    halvings = max(0, numerator.bit_length() - denominator.bit_length() + 2)
    work = precision + halvings + 8
    y_low = (numerator << work) // (denominator << halvings)
    y_high = y_low + 1
    one = 1 << work
    sum_low = sum_high = term_low = term_high = one
    index = 0
    while term_high > 1:
        index += 1
        term_low = (term_low * y_low >> work) // index
        term_high = _quotient_up(_shift_up(term_high * y_high, work), index)
        sum_low += term_low
        sum_high += term_high
    low = (1 << 2 * work) // (sum_high + term_high)
    high = _quotient_up(1 << 2 * work, sum_low)
    for _ in range(halvings):
        low = low * low >> work
        high = _shift_up(high * high, work)
    return low >> work - precision, _shift_up(high, work - precision)


def _shift_up(value: int, bits: int) -> int:
    """Return value / 2^bits, rounded up."""
    return -(-value >> bits)


def _quotient_up(numerator: int, denominator: int) -> int:
    """Return numerator / denominator, rounded up."""
    return -(-numerator // denominator)
