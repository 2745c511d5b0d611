"""The number of records, where nobody may know it exactly: a noisy count, paid for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

COUNT_SHARE = 0.01
"""Of the squared precision of a sum: a count needs few digits."""

COUNT_STEPS = 2.0**20
"""Grid steps in one record."""

_LEAST = 2.0


class NoisyCount:
    """The mean of the noisy counts so far.

    It is never below two standard deviations of itself, nor below 1: a count that is lost in its
    noise would make arbitrarily large steps.

    Args:
        sigma: standard deviation of one noisy count, in grid steps.

    Attributes:
        records: the mean.

    Example:
        >>> count = NoisyCount(sigma=10 * COUNT_STEPS)
        >>> count.add([[100 * COUNT_STEPS]])
        >>> count.records
        100.0
    """

    def __init__(self, sigma: float) -> None:
        self._sigma = sigma / COUNT_STEPS
        self._total, self._seen = 0.0, 0
        self.records = max(1.0, _LEAST * self._sigma)

    def add(self, noisy: Sequence[npt.ArrayLike]) -> None:
        """Take in one noisy count, in grid steps: a list of one array of shape (1,)."""
        self._total += float(np.asarray(noisy[0], dtype=np.float64)[0]) / COUNT_STEPS
        self._seen += 1
        least = max(1.0, _LEAST * self._sigma / self._seen**0.5)
        self.records = max(least, self._total / self._seen)
