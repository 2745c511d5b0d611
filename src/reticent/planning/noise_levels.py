"""How much Gaussian noise a total needs, and how much stands for it beside fewer rows."""

from __future__ import annotations

import math
from functools import lru_cache

from reticent.accounting.exact_gaussian import gaussian_delta
from reticent.core.checks import positive, probability
from reticent.planning.tasks import Task

_STEPS = 100


@lru_cache(maxsize=4096)
def gaussian_multiplier(*, epsilon: float, delta: float) -> float:
    """Least standard deviation, over the l2 sensitivity, of one Gaussian answer of (``epsilon``,
    ``delta``).

    Args:
        epsilon: above 0.
        delta: in (0, 1).

    Returns:
        A multiplier that meets the total, at most 1e-9 of itself above the least one.

    Reference: Balle and Wang 2018, Theorem 8.

    Example:
        >>> round(gaussian_multiplier(epsilon=1.0, delta=1e-5), 4)
        3.7306
    """
    positive(epsilon, name="epsilon")
    probability(delta, name="delta", allow_zero=False)

    def enough(multiplier: float) -> bool:
        return gaussian_delta(noise_multiplier=multiplier, epsilon=epsilon) <= delta

    upper = 1.0
    while not enough(upper):
        upper *= 2
    lower = upper / 2
    while enough(lower):
        lower, upper = lower / 2, lower
    for _ in range(_STEPS):
        if upper <= lower * (1 + 1e-9):
            break
        middle = math.sqrt(lower * upper)
        lower, upper = (lower, middle) if enough(middle) else (middle, upper)
    return upper


def sum_noise(task: Task, *, releases: int, noise_scale: float) -> float:
    """Standard deviation of the noise on each of ``releases`` sums over stand-ins, for
    contributions of l2 norm at most 1.

    T Gaussian answers of deviation sigma are together one of sigma / sqrt(T), exactly.

    Args:
        task: its total, and what neighbours are.
        releases: how many sums are released, at least 1.
        noise_scale: stand-ins / private records.

    Example:
        >>> from reticent.core import AddRemove, Guarantee
        >>> task = Task(Guarantee(1.0, 1e-5, AddRemove()), 1000, 200, 2, 5)
        >>> round(sum_noise(task, releases=4, noise_scale=0.5), 4)
        3.7306
    """
    one = gaussian_multiplier(epsilon=task.guarantee.epsilon, delta=task.guarantee.delta)
    return noise_scale * task.sensitivity * one * math.sqrt(releases)
