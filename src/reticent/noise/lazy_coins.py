"""Coins whose probability is a given double, a quotient or an exponential: 16 bits each, more
where those do not decide.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from reticent.noise.expansions import Thresholds, Words
from reticent.noise.tables import HEAD_BITS, heads_from

Array = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]

_WORD_BITS = 64

_DEGREE = 12
_COEFFICIENTS = [1.0]
for _power in range(1, _DEGREE + 1):
    _COEFFICIENTS.append(-_COEFFICIENTS[-1] / _power)

_SQUARINGS = 6
_LARGEST_EXPONENT = 40.0

EXPONENTIAL_ERROR = 2.0**-32
"""Bound on |exponential(x) - exp(-x)|, see there."""


def double_coins(probability: Array, words: Words) -> Booleans:
    """True with *exactly* the given float64 probability, for each entry.

    A uniform real u is compared with p digit by digit: 16 binary digits first, then 64 at a time
    where all were equal so far. Multiplying a double by a power of two and splitting off its whole
    part are exact, so there is no smallest probability and no rounding. How many words are taken
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
        # A rest of 1 is that of probability 1, and shown whatever comes.
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
    """True with probability *exactly* p_i, where p_i is known to within ``error`` and, where that
    is not enough, exactly.

    16 bits of a uniform real u leave it a cell of width 2^-16. If the cell lies below p_i - error
    or above p_i + error, that decides, whatever p_i is; otherwise, about once in 2^16 coins,
    ``exact`` compares digit by digit.

    Args:
        approximate: shape (n,), |approximate - p| at most ``error``; rounding of this function's
            own arithmetic included, so ``error`` must be at least 2^-45 above that bound.
        error: at most 2^-20.
        exact: the one threshold p_i, for the place i of a coin.
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
    """exp(-x) to within ``EXPONENTIAL_ERROR`` in absolute terms, by additions and multiplications
    only.

    x is cut off at 40, where exp(-x) is below 2^-57, and divided by 64. The Taylor polynomial of
    degree 12 at y = x/64 <= 0.625 leaves out at most y^13/13! < 2^-41; Horner's rule rounds by less
    than 2^-46; the sum is at least 0.53, so its relative error is below 2^-39.9. Six squarings
    multiply that by 64 and add 63 roundings: below 2^-33.8.

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
