"""Symbols of a finite distribution for whole arrays: 16 random bits and a look-up, more bits
where those do not decide.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from reticent.noise.expansions import Thresholds, Words

Heads = npt.NDArray[np.uint16]

HEAD_BITS = 16
_WORD_BITS = 64
_UNDECIDED = 2**16 - 1
"""Entry of a cell that holds a threshold."""

BLOCK = 2**14
"""Draws made at a time: their words, symbols and tables stay in the processor's second-level
cache.
"""

MOST_SYMBOLS = 2**10
"""Of 2^16 cells one in 64 may be undecided; more symbols would be slow, not wrong."""


class SymbolTable:
    """Draws i with probability t_{i+1} - t_i exactly, where t_0 = 0 and t_{m+1} = 1.

    Symbol i is the number of thresholds that are at most u, u a uniform real. [0, 1) is cut into
    2^16 cells; a table says for each cell how many thresholds lie below it, unless one lies in it.
    There u gets 48 bits more, which are compared with the first 64 of every threshold, and where
    they are equal 64 more as often as it takes (``Thresholds.settle``).

    A draw costs 16 bits, 64 bits more with probability at most m 2^-16, and 64 more again with at
    most m 2^-64.

    Args:
        thresholds: at most 2^10 of them.

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
        """One symbol for each of ``heads``.

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
        """Symbols where 64 bits are needed, or more."""
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
    """``count`` uniform 16-bit numbers, and the words they are part of, which the caller
    overwrites after use.
    """
    block = words(-(-count * HEAD_BITS // _WORD_BITS))
    return block.view(np.uint16)[:count], block


def blocks(count: int) -> Iterator[slice]:
    """Consecutive slices of at most ``BLOCK`` that cover ``count`` draws."""
    for start in range(0, count, BLOCK):
        yield slice(start, min(start + BLOCK, count))
