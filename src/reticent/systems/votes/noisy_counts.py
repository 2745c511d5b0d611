"""How many records there are, where nobody may know exactly: a noisy count, paid for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.settings import Group

COUNT_SHARE = 0.01
"""Of the squared precision of a sum: a count needs few digits."""

COUNT_STEPS = 2.0**20
"""Grid steps in one record."""

_LEAST = 2.0


@dataclass(frozen=True, kw_only=True)
class Pace(Group):
    """How far a step of noisy gradient descent goes for the sum that it was given.

    Args:
        learning_rate: of the mean gradient of feature vectors of length 1, above 0; None for the
            estimator's own. Squares have one, which their curvature gives.
        records: a public number, about that of the private records, which sums are divided by;
            None for a noisy count, paid from the total.

    Example:
        >>> Pace(records=1000).get_params()
        {'learning_rate': None, 'records': 1000}

    References:
        - Bassily, Smith and Thakurta (2014), "Private empirical risk minimization: efficient
          algorithms and tight error bounds", doi:10.1109/FOCS.2014.56.

    See Also:
        reticent.NoisyGradientClassifier: an estimator that takes it.
    """

    learning_rate: float | None = None
    records: int | None = None


def counted(settings: Mapping[str, Any], records: int) -> dict[str, Any]:
    """Return settings of a descent that divides its sums by ``records``.

    Example:
        >>> counted({"steps": 10}, 500)["pace"].records
        500
    """
    return {**settings, "pace": replace(settings.get("pace") or Pace(), records=records)}


class NoisyCount:
    """The mean of the noisy counts so far.

    It is never below two standard deviations of itself, nor below 1: a count that is lost in its
    noise would make arbitrarily large steps.

    Args:
        sigma: of one noisy count, in grid steps.

    Attributes:
        value: in records.
        certain: the share of ``value`` that a count one standard deviation lower would leave.

    Example:
        >>> count = NoisyCount(sigma=10 * COUNT_STEPS)
        >>> count.add([100 * COUNT_STEPS])
        >>> count.value
        100.0
    """

    def __init__(self, sigma: float) -> None:
        self._sigma = sigma / COUNT_STEPS
        self._total, self._seen = 0.0, 0
        self.certain = 0.0
        self.value = max(1.0, _LEAST * self._sigma)

    def add(self, noisy: npt.ArrayLike) -> None:
        """Takes in one noisy count, in grid steps, shape (1,)."""
        self._total += float(np.asarray(noisy, dtype=np.float64)[0]) / COUNT_STEPS
        self._seen += 1
        least = max(1.0, _LEAST * self._sigma / self._seen**0.5)
        self.value = max(least, self._total / self._seen)
        lower = self._total / self._seen - self._sigma / self._seen**0.5
        self.certain = max(0.0, lower) / self.value
