"""Words that tests write down, and a slow comparison of real numbers that says what must come of
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mpmath
import numpy as np
import pytest

from reticent.noise.expansions import GeometricShares, Thresholds


def seeded(seed: int) -> Callable[[int], np.ndarray]:
    """A source of words that repeats."""
    rng = np.random.default_rng(seed)
    return lambda count: rng.integers(0, 2**64, size=count, dtype=np.uint64)


class Listed:
    """The given words in order; asking for more is an error."""

    def __init__(self, words: Sequence[int]) -> None:
        self.left = list(words)

    def __call__(self, count: int) -> np.ndarray:
        assert count <= len(self.left), f"asked for {count} words, {len(self.left)} are left"
        head, self.left = self.left[:count], self.left[count:]
        return np.array(head, dtype=np.uint64)


class Aimed:
    """Words of which many equal the first 16, the next 48 or the next 64 digits of some
    threshold.
    """

    def __init__(self, thresholds: Sequence[Thresholds], seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        long = [floor for each in thresholds for floor in each.floors(192)]
        self._heads = np.array([floor >> 176 for floor in long], dtype=np.uint16)
        self._seconds = np.array([(floor >> 128) % 2**48 << 16 for floor in long], dtype=np.uint64)
        self._thirds = np.array([(floor >> 64) % 2**64 for floor in long], dtype=np.uint64)
        self.asked = 0

    def __call__(self, count: int) -> np.ndarray:
        self.asked += count
        heads = self._rng.choice(self._heads, size=4 * count).view(np.uint64)
        free = self._rng.integers(0, 2**64, size=count, dtype=np.uint64)
        seconds, thirds = (
            self._rng.choice(values, size=count) for values in (self._seconds, self._thirds)
        )
        kinds = self._rng.integers(0, 4, size=count)
        return np.select([kinds == 0, kinds == 1, kinds == 2], [heads, seconds, thirds], free)


class Comparisons:
    """What the tables must give, by comparing intervals of mpmath numbers; nothing of the code is
    used.

    Attributes:
        bits: of mpmath's numbers; enough for every threshold of these tests.
    """

    bits = 2400

    def thresholds(self, shares: GeometricShares) -> list[mpmath.mpf]:
        """The partial sums by closed forms; to be called at ``bits``."""
        r, n = mpmath.exp(-mpmath.mpf(shares.numerator) / shares.denominator), shares.size
        if shares.open:
            return [1 - r**v for v in range(1, n + 1)]
        inside = [(1 - r**v) / (1 - r**n) for v in range(1, n)]
        if not shares.signed:
            return inside
        positive = 1 / (1 + r)
        return [
            *(positive * f for f in inside),
            positive,
            *(positive * (1 + r * f) for f in inside),
        ]

    def symbols(
        self, shares: GeometricShares, heads: np.ndarray, words: Callable[[int], np.ndarray]
    ) -> list[int]:
        """All that 16 digits leave open get 48 more together, then each by itself 64 at a time."""
        with mpmath.workprec(self.bits):
            thresholds = self.thresholds(shares)
            prefixes, bits = [int(head) for head in heads], [16] * len(heads)

            def open_(place: int) -> bool:
                low, high = (mpmath.ldexp(prefixes[place] + end, -bits[place]) for end in (0, 1))
                return any(low < threshold < high for threshold in thresholds)

            first = [place for place in range(len(heads)) if open_(place)]
            for place, word in zip(first, words(len(first)).tolist() if first else [], strict=True):
                prefixes[place], bits[place] = (prefixes[place] << 48) + (word >> 16), 64
            for place in first:
                while open_(place):
                    prefixes[place], bits[place] = (
                        (prefixes[place] << 64) + int(words(1)[0]),
                        bits[place] + 64,
                    )
            return [
                sum(t <= mpmath.ldexp(p, -b) for t in thresholds)
                for p, b in zip(prefixes, bits, strict=True)
            ]


@pytest.fixture(scope="session")
def comparisons() -> Comparisons:
    """The slow comparison of real numbers."""
    return Comparisons()


@pytest.fixture
def listed() -> Callable[..., Listed]:
    """Makes a source that gives the listed words and no others."""
    return Listed


@pytest.fixture
def aimed() -> Callable[..., Aimed]:
    """Makes a source that aims at the digits of given thresholds."""
    return Aimed
