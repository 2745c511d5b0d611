"""Exact symbols, coins and uniform integers for whole arrays, from 16 or 32 random bits each and
more where those do not decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Booleans, Integers
from reticent.noise.expansions import Thresholds, Words

Heads = npt.NDArray[np.uint16]

HEAD_BITS = 16
_WORD_BITS = 64
_UNDECIDED = 2**16 - 1
"""Entry of a cell that holds a threshold."""

BLOCK = 2**14
"""Number of draws made at a time. Their words, symbols and tables stay in the processor's
second-level cache.
"""

MOST_SYMBOLS = 2**10
"""Of 2^16 cells one in 64 may be undecided. More symbols would be slow, not wrong."""


class SymbolTable:
    """A table that draws i with probability t_{i+1} - t_i exactly, where t_0 = 0 and t_{m+1} = 1.

    Symbol i is the number of thresholds that are at most a uniform real u. [0, 1) is cut into 2^16
    cells. A table has for each cell the number of thresholds below it, unless one lies in it. There
    u gets 48 bits more, which are compared with the first 64 of every threshold. Where they are
    equal, u gets 64 more as often as it takes (``Thresholds.settle``).

    A draw costs 16 bits, 64 bits more with probability at most m 2^-16, and 64 more again with at
    most m 2^-64.

    Args:
        thresholds: at most 2^10 thresholds.

    Example:
        >>> from reticent.noise.expansions import Quotient
        >>> table = SymbolTable(Quotient(1, 4))
        >>> table.symbols(
        ...     np.array([0, 2**14 - 1, 2**14 + 1], dtype=np.uint16),
        ...     lambda count: np.zeros(count, np.uint64),
        ... ).tolist()
        [0, 0, 1]
    """

    def __init__(self, thresholds: Thresholds) -> None:
        self._thresholds = thresholds
        self._floors = np.array(thresholds.floors(_WORD_BITS), dtype=np.uint64)
        if len(self._floors) > MOST_SYMBOLS:
            raise ValueError(
                f"thresholds: expected at most {MOST_SYMBOLS}, got {len(self._floors)}"
            )
        cells = (self._floors >> np.uint64(_WORD_BITS - HEAD_BITS)).astype(np.int64)
        self._lookup = np.searchsorted(cells, np.arange(2**HEAD_BITS)).astype(np.uint16)
        self._lookup[cells] = _UNDECIDED

    def symbols(self, heads: Heads, words: Words) -> npt.NDArray[np.uint16]:
        """Return one symbol for each of ``heads``.

        Args:
            heads: shape (n,), independent uniform 16-bit numbers.
            words: source of further bits.
        """
        drawn = self._lookup.take(heads)
        undecided = np.flatnonzero(drawn == _UNDECIDED)
        if undecided.size:
            drawn[undecided] = self._longer(heads[undecided], words)
        return drawn

    def _longer(self, heads: Heads, words: Words) -> npt.NDArray[np.intp]:
        """Return the symbols that need 64 bits or more."""
        # bit-exact: seeded draws depend on how many words are asked for, and in which order.
        more = words(heads.size)
        known = (heads.astype(np.uint64) << np.uint64(_WORD_BITS - HEAD_BITS)) | (
            more >> np.uint64(HEAD_BITS)
        )
        more.fill(0)
        below = np.searchsorted(self._floors, known, side="right")
        equal = (below > 0) & (self._floors[below - 1] == known)
        for place in np.flatnonzero(equal):
            below[place] = self._thresholds.settle(int(known[place]), _WORD_BITS, words)
        return below


def heads_from(words: Words, count: int) -> tuple[Heads, npt.NDArray[np.uint64]]:
    """Return ``count`` uniform 16-bit numbers, and the words they are part of. The caller
    overwrites the words after use.
    """
    block = words(-(-count * HEAD_BITS // _WORD_BITS))
    return block.view(np.uint16)[:count], block


def blocks(count: int) -> Iterator[slice]:
    """Yield consecutive slices of at most ``BLOCK`` that cover ``count`` draws."""
    for start in range(0, count, BLOCK):
        yield slice(start, min(start + BLOCK, count))


_DEGREE = 12
_COEFFICIENTS = [1.0]
for _power in range(1, _DEGREE + 1):
    _COEFFICIENTS.append(-_COEFFICIENTS[-1] / _power)

_SQUARINGS = 6
_LARGEST_EXPONENT = 40.0

EXPONENTIAL_ERROR = 2.0**-32
"""Bound on |exponential(x) - exp(-x)|, proved at ``exponential``."""


def double_coins(probability: Array, words: Words) -> Booleans:
    """Return True with *exactly* the given float64 probability, for each entry.

    A uniform real u is compared with p digit by digit: 16 binary digits first, then 64 at a time
    where all were equal so far. Multiplying a double by a power of two and splitting off its whole
    part are exact, so there is no smallest probability and no rounding. The number of words taken
    does not depend on p, except with probability 2^-80 a coin.

    Args:
        probability: shape (n,), in [0, 1].
        words: source of random words.
    """
    heads, block = heads_from(words, probability.size)
    scaled = np.ldexp(probability, HEAD_BITS)
    digits = np.minimum(np.floor(scaled), 2.0**HEAD_BITS - 1)
    shown = heads < digits
    equal = np.flatnonzero(heads == digits)
    block.fill(0)
    rest = scaled[equal] - digits[equal]
    while equal.size:
        more = words(equal.size)
        scaled = np.ldexp(rest, _WORD_BITS)
        # A rest of 1 is that of probability 1, which shows True whatever comes.
        certain = rest >= 1.0
        digits = np.floor(np.where(certain, 0.0, scaled))
        whole = digits.astype(np.uint64)
        shown[equal] = (more < whole) | certain
        # Where p has no further digit that is not 0, u is at least p.
        undecided = (more == whole) & ~certain & (scaled > digits)
        more.fill(0)
        equal, rest = equal[undecided], scaled[undecided] - digits[undecided]
    return shown


def enclosed_coins(
    approximate: Array, error: float, exact: Callable[[int], Thresholds], words: Words
) -> Booleans:
    """Return True with *exactly* probability p_i, where p_i is known to within ``error`` and, where
    that is not enough, exactly.

    16 bits of a uniform real u leave it a cell of width 2^-16. If the cell lies below p_i - error
    or above p_i + error, that decides, whatever p_i is. Otherwise, about once in 2^16 coins,
    ``exact`` compares digit by digit.

    Args:
        approximate: shape (n,), |approximate - p| at most ``error``. That includes the rounding of
            this function's own arithmetic, so ``error`` must be at least 2^-45 above the bound.
        error: at most 2^-20.
        exact: function from the place i of a coin to the one threshold p_i.
        words: source of random words.
    """
    heads, block = heads_from(words, approximate.size)
    cells = heads.astype(np.float64)
    scaled = np.ldexp(approximate, HEAD_BITS)
    margin = error * 2.0**HEAD_BITS
    shown = cells + (1.0 + margin) <= scaled
    for place in np.flatnonzero(~shown & (cells - margin < scaled)):
        shown[place] = exact(int(place)).settle(int(heads[place]), HEAD_BITS, words) == 0
    block.fill(0)
    return shown


def exponential(exponent: Array) -> Array:
    """Return exp(-x) to within ``EXPONENTIAL_ERROR`` in absolute terms, by additions and
    multiplications only.

    x is cut off at 40, where exp(-x) is below 2^-57, and divided by 64. The Taylor polynomial of
    degree 12 at y = x/64 <= 0.625 leaves out at most y^13/13! < 2^-41. Horner's rule rounds by less
    than 2^-46. The sum is at least 0.53, so its relative error is below 2^-39.9. Six squarings
    multiply that by 64 and add 63 roundings, which stays below 2^-33.8.

    Args:
        exponent: any shape, at least 0, finite or infinite.

    Example:
        >>> bool(abs(exponential(np.array([1.0])) - np.exp(-1.0)) < EXPONENTIAL_ERROR)
        True
    """
    y = np.minimum(exponent, _LARGEST_EXPONENT)
    y *= 2.0**-_SQUARINGS
    value = np.full_like(y, _COEFFICIENTS[-1])
    for coefficient in _COEFFICIENTS[-2::-1]:
        value *= y
        value += coefficient
    for _ in range(_SQUARINGS):
        np.square(value, out=value)
    return value


LARGEST_SHORT_END = 2**32

_LOW = np.uint64(2**32 - 1)
_HALF = np.uint64(32)
_WORD_MAX = np.uint64(2**64 - 1)


def short_uniform(ends: Integers, words: Words) -> Integers:
    """Return exactly uniform integers on 0 .. end - 1, for ends of at most 2^32.

    For a 32-bit word w the answer is the whole part of w end / 2^32. The products w end lie between
    multiples of 2^32, and some of these gaps hold one product more than others. A product whose
    rest is below 2^32 mod end is drawn again, which leaves equally many products for each answer. A
    rest of ``end`` or more needs no division to be told.

    Args:
        ends: shape (n,), in 1 .. 2^32.
        words: source of random words.

    References:
        - Lemire (2019), "Fast random integer generation in an interval", arXiv:1805.10941,
          algorithm 5.
    """
    drawn = np.empty(ends.size, dtype=np.int64)
    for place in blocks(ends.size):
        end = ends[place].astype(np.uint64)
        answer, pending = drawn[place], np.arange(end.size)
        while pending.size:
            block = words(-(-pending.size // 2))
            product = block.view(np.uint32)[: pending.size] * end[pending]
            block.fill(0)
            answer[pending] = (product >> _HALF).astype(np.int64)
            rest = product & _LOW
            doubtful = np.flatnonzero(rest < end[pending])
            own = end[pending[doubtful]]
            pending = pending[doubtful[rest[doubtful] < (np.uint64(LARGEST_SHORT_END) - own) % own]]
    return drawn


def long_uniform(ends: Integers, words: Words) -> Integers:
    """Return exactly uniform integers on 0 .. end - 1 for any ends, as remainders of 64-bit words.

    Words above the last multiple of an end would favour small remainders, so they are drawn again.

    Args:
        ends: shape (n,), at least 1.
        words: source of random words.
    """
    modulus = ends.astype(np.uint64)
    last_fair = _WORD_MAX - (_WORD_MAX % modulus + np.uint64(1)) % modulus
    # bit-exact: seeded draws take a word each, then one for each that would be unfair.
    drawn = words(modulus.size)
    unfair = np.flatnonzero(drawn > last_fair)
    while unfair.size:
        drawn[unfair] = words(unfair.size)
        unfair = unfair[drawn[unfair] > last_fair[unfair]]
    remainder = (drawn % modulus).astype(np.int64)
    drawn.fill(0)
    return remainder
