"""Words that tests write down, a slow comparison of real numbers that says what must come of them,
and how well draws fit a law.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mpmath
import numpy as np
from scipy import stats

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


BITS = 2400
"""Of mpmath's numbers; enough for every threshold of these tests."""


def thresholds(shares: GeometricShares) -> list[mpmath.mpf]:
    """The partial sums by closed forms; to be called at ``BITS``."""
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


def compared(
    shares: GeometricShares, heads: np.ndarray, words: Callable[[int], np.ndarray]
) -> list[int]:
    """What a table must give, by comparing intervals of mpmath numbers; nothing of the code is
    used. All that 16 digits leave open get 48 more together, then each by itself 64 at a time.
    """
    with mpmath.workprec(BITS):
        ends = thresholds(shares)
        prefixes, bits = [int(head) for head in heads], [16] * len(heads)

        def open_(place: int) -> bool:
            low, high = (mpmath.ldexp(prefixes[place] + end, -bits[place]) for end in (0, 1))
            return any(low < threshold < high for threshold in ends)

        first = [place for place in range(len(heads)) if open_(place)]
        for place, word in zip(first, words(len(first)).tolist() if first else [], strict=True):
            prefixes[place], bits[place] = (prefixes[place] << 48) + (word >> 16), 64
        for place in first:
            while open_(place):
                prefixes[place] = (prefixes[place] << 64) + int(words(1)[0])
                bits[place] += 64
        return [
            sum(t <= mpmath.ldexp(p, -b) for t in ends) for p, b in zip(prefixes, bits, strict=True)
        ]


def p_value(draws: np.ndarray, law: Callable[[np.ndarray], np.ndarray]) -> float:
    """Chi-square p-value of integer draws; cells of fewer than 10 expected are one."""
    support = np.arange(draws.min() - 1, draws.max() + 2)
    expected = draws.size * law(support)
    counts = np.bincount(draws.ravel() - support[0], minlength=len(support))
    large = expected >= 10
    expected, counts = (
        np.append(part[large], draws.size - part[large].sum()) for part in (expected, counts)
    )
    statistic = ((counts - expected) ** 2 / np.maximum(expected, 1e-2)).sum()
    return float(stats.chi2.sf(statistic, len(expected) - 1))


def laplace_law(scale: float) -> Callable[[np.ndarray], np.ndarray]:
    """The discrete law exp(-|v| / scale) of whole numbers."""
    return lambda v: np.tanh(0.5 / scale) * np.exp(-np.abs(v) / scale)


def gaussian_law(sigma: float) -> Callable[[np.ndarray], np.ndarray]:
    """The discrete law exp(-v^2 / (2 sigma^2)) of whole numbers."""
    all_of_them = np.arange(-int(40 * sigma) - 40, int(40 * sigma) + 41)
    whole = np.exp(-0.5 * (all_of_them / sigma) ** 2).sum()
    return lambda v: np.exp(-0.5 * (v / sigma) ** 2) / whole
