"""Uniform integers below given ends, exact, for whole arrays: 32 bits each where the ends allow
it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from reticent.noise.expansions import Words
from reticent.noise.tables import blocks

Integers = npt.NDArray[np.int64]

LARGEST_SHORT_END = 2**32

_LOW = np.uint64(2**32 - 1)
_HALF = np.uint64(32)
_WORD_MAX = np.uint64(2**64 - 1)


def short_uniform(ends: Integers, words: Words) -> Integers:
    """Exactly uniform integers on 0 .. end - 1, for ends of at most 2^32.

    For a 32-bit word w the answer is the whole part of w end / 2^32. Of the products w end some
    multiples of 2^32 have one more in front of them than others; a product whose rest is below 2^32
    mod end is drawn again, which leaves as many for each answer. A rest of ``end`` or more needs no
    division to be told.

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
    """Exactly uniform integers on 0 .. end - 1, for any ends: remainders of 64-bit words.

    Words above the last multiple of an end would favour small remainders; they are drawn again.

    Args:
        ends: shape (n,), at least 1.
        words: source of random words.
    """
    modulus = ends.astype(np.uint64)
    last_fair = _WORD_MAX - (_WORD_MAX % modulus + np.uint64(1)) % modulus
    drawn = words(modulus.size)
    unfair = np.flatnonzero(drawn > last_fair)
    while unfair.size:
        drawn[unfair] = words(unfair.size)
        unfair = unfair[drawn[unfair] > last_fair[unfair]]
    remainder = (drawn % modulus).astype(np.int64)
    drawn.fill(0)
    return remainder
