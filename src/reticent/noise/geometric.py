"""Exact geometric and discrete Laplace variables for whole arrays.

A geometric variable K with P(K = k) = (1 - q) q^k, q = exp(-1/scale), has independent binary
digits, because q^k is the product of q^(2^j) over the digits j of k that are 1. So a group of
consecutive digits is independent of the others, and is itself geometric with ratio r = q^(2^first
digit). It is cut off at 2^width, except for the leading group, which has no end. Each group is
drawn by one look-up (``SymbolTable``). The leading one has a symbol for "2^width or more", of
probability r^(2^width) exactly. There 2^width is added and the group drawn again, because a
geometric variable has no memory.

Given its sign, a discrete Laplace variable v with P(v) ~ q^|v| is geometric too: K = v where v
>= 0, and K = -v - 1 where v < 0. The sign is negative with probability q/(1 + q), independently
of K, and is drawn with the lowest digits.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Integers
from reticent.noise.digits import SymbolTable, blocks, heads_from
from reticent.noise.expansions import GeometricShares, Words

SATURATION = 2**62
"""A magnitude from here on comes out as some number from here to 2^62 + 2^53, so that its sum with
a point of a grid fits int64.
"""

_LEAST_REACH = 4
"""The digits reach this many times the scale or more, so the leading group is drawn again with
probability e^-4 at most.
"""

_GROUP_BITS = 8
"""Symbols of a group, as a power of two: 2^8 of the 2^16 cells of its table are undecided."""


class GeometricDigits:
    """Draws of the geometric distribution of one scale, with or without a sign.

    Args:
        scale: a float64 above 0, at most 2^50. The distribution is that of its exact value, which
            is a rational number.

    Attributes:
        groups: first place of each group of digits and the place after its last one. The leading
            group has no last one.

    *Number of words.* With g groups (3 for scales from 2^13 to 2^21) a block of n draws takes
    ceil(g n / 4) words. It takes one more for every undecided look-up, and ceil(k / 4) for k
    leading groups that are drawn again, as often as any are.

    Example:
        >>> from reticent.noise.release_samplers import system_words
        >>> GeometricDigits(2.0**-10).laplace(4, system_words).tolist()
        [0, 0, 0, 0]
    """

    def __init__(self, scale: float) -> None:
        exact = Fraction(scale)
        digits = 0
        while 2**digits < _LEAST_REACH * exact:
            digits += 1
        # The sign counts as a digit of the first group.
        places = digits + 1
        groups = max(2, -(-places // _GROUP_BITS))
        ends = [max(0, places * part // groups - 1) for part in range(1, groups + 1)]
        starts = [0, *ends[:-1]]
        self.groups = list(zip(starts, ends, strict=True))
        self._tables = [
            SymbolTable(
                GeometricShares(
                    (2**start / exact).numerator,
                    (2**start / exact).denominator,
                    size=2 ** (end - start),
                    signed=group == 0,
                    open=group == groups - 1,
                )
            )
            for group, (start, end) in enumerate(self.groups)
        ]

    def geometric(self, count: int, words: Words) -> Integers:
        """Return ``count`` independent integers k >= 0 with probability proportional to exp(-k /
        scale).
        """
        drawn = np.empty(count, dtype=np.int64)
        for place in blocks(count):
            drawn[place], _ = self._draw(place.stop - place.start, words)
        return drawn

    def laplace(self, count: int, words: Words) -> Integers:
        """Return ``count`` independent integers v with probability proportional to exp(-|v| /
        scale).
        """
        drawn = np.empty(count, dtype=np.int64)
        for place in blocks(count):
            magnitude, negative = self._draw(place.stop - place.start, words)
            # Minus one is all ones: its exclusive or with k is -k - 1.
            np.bitwise_xor(magnitude, -negative, out=drawn[place])
        return drawn

    def _draw(self, count: int, words: Words) -> tuple[Integers, Integers]:
        """Return magnitudes, and 1 where the sign is negative, else 0."""
        groups = len(self._tables)
        heads, block = heads_from(words, groups * count)
        symbols = [
            table.symbols(part, words)
            for table, part in zip(self._tables, heads.reshape(groups, count), strict=True)
        ]
        block.fill(0)
        lowest = symbols[0].astype(np.int64)
        low_bits = self.groups[0][1]
        negative = lowest >> low_bits
        magnitude = lowest & ((1 << low_bits) - 1)
        for (start, _), symbol in zip(self.groups[1:-1], symbols[1:-1], strict=True):
            magnitude |= symbol.astype(np.int64) << start
        magnitude += self._leading(symbols[-1], words) << self.groups[-1][0]
        return magnitude, negative

    def _leading(self, symbols: npt.NDArray[np.uint16], words: Words) -> Integers:
        """Return the leading group's value, drawn again where it is its size or more."""
        start, end = self.groups[-1]
        more = 2 ** (end - start)
        value = symbols.astype(np.int64)
        pending = np.flatnonzero(symbols == more)
        while pending.size:
            heads, block = heads_from(words, pending.size)
            again = self._tables[-1].symbols(heads, words)
            block.fill(0)
            value[pending] = np.minimum(value[pending] + again, SATURATION >> start)
            pending = pending[again == more]
        return value


@lru_cache(maxsize=32)
def geometric_digits(scale: float) -> GeometricDigits:
    """Return the tables of a scale, which hold nothing random."""
    return GeometricDigits(scale)
