"""The least noise with which all screening bits and labels of a Private-kNN release fit into a
required total.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from reticent.accounting.private_knn import (
    PrivateKnnSteps,
    epsilon_of_noisy_votes,
    private_knn_total,
)
from reticent.core.checks import positive, probability
from reticent.core.errors import CalibrationFailed, InvalidParameter

_TOLERANCE = 2e-3
"""Largest distance of the total below the required epsilon, relative to it."""

_STEPS = 20
_LEAST, _LARGEST = 1e-3, 1e5

_EXACT, _POWER = 0.8005, 0.9
"""First guesses of exact over Gaussian noise, and of the power of the noise by which epsilon falls.
Both only make the search short.
"""


@lru_cache(maxsize=64)
def calibrate_private_knn(
    *,
    epsilon: float,
    delta: float,
    queries: int,
    answers: int,
    neighbours: int,
    sampling_probability: float,
    threshold: float | None,
    noise_ratio: float | None,
    shared_subsample: bool = False,
    vote_sensitivity: float = math.sqrt(2.0),
    one_label: bool = True,
) -> PrivateKnnSteps:
    """Return the steps with the least noise whose total is at most (``epsilon``, ``delta``).

    Screening gets ``noise_ratio`` times the noise of the votes, so one number is searched for, and
    the total falls with it. The total is that of ``private_knn_total``.

    Args:
        epsilon: total epsilon, above 0.
        delta: total delta, in (0, 1).
        queries, answers, neighbours, sampling_probability, threshold, shared_subsample,
        vote_sensitivity, one_label: attributes of ``PrivateKnnSteps``.
        noise_ratio: sigma_screening / sigma_votes, above 0, or None without screening. A larger one
            leaves more of the budget for labels. The paper has 3 on MNIST.

    Returns:
        Steps whose recomputed total is at most ``epsilon``, and within 0.2 % of it wherever the
        bound is continuous there.

    Raises:
        InvalidParameter: a parameter out of its range.
        CalibrationFailed: no noise up to 1e5 votes is enough.

    Example:
        >>> steps = calibrate_private_knn(
        ...     epsilon=0.5,
        ...     delta=1e-5,
        ...     queries=735,
        ...     answers=735,
        ...     neighbours=300,
        ...     sampling_probability=0.15,
        ...     threshold=None,
        ...     noise_ratio=None,
        ... )
        >>> round(steps.sigma_votes, 1)
        35.4

    Utility:
        Within 0.2 % of the total that was asked for, from below.

    Runtime:
        Some tens of totals, 0.3 s on one core (benchmarks/runtimes.py).

    References:
        - Zhu, Yu, Chandraker and Wang (2020), "Private-kNN: practical differential privacy for
          computer vision", doi:10.1109/CVPR42600.2020.01187 (the settings).
        - The bounds: docs/private-knn-accounting.md.

    See Also:
        reticent.accounting.private_knn_total: the inverse.
        reticent.accounting.noise_multiplier: other mechanisms.
    """
    target = positive(epsilon, name="epsilon")
    delta = probability(delta, name="delta", allow_zero=False)
    if (threshold is None) != (noise_ratio is None):
        raise InvalidParameter("threshold and noise_ratio: expected both, or None for both")
    ratio = None if noise_ratio is None else positive(noise_ratio, name="noise_ratio")
    template = PrivateKnnSteps(
        queries=queries,
        answers=answers,
        neighbours=neighbours,
        sampling_probability=sampling_probability,
        sigma_votes=1.0,
        threshold=threshold,
        sigma_screening=ratio,
        shared_subsample=shared_subsample,
        vote_sensitivity=vote_sensitivity,
        one_label=one_label,
    )

    def at(sigma: float) -> PrivateKnnSteps:
        return replace(
            template, sigma_votes=sigma, sigma_screening=None if ratio is None else ratio * sigma
        )

    # The exact cost is never above the Gaussian one, which is quick to invert. It is nearly a power
    # of the noise, so that few of its slower evaluations come close.
    lower, upper = 0.0, least_gaussian_noise(at, target, delta)
    sigma = _EXACT * upper
    for _ in range(_STEPS):
        spent = private_knn_total(at(sigma), delta=delta).epsilon
        lower, upper = (lower, sigma) if spent <= target else (sigma, upper)
        if (1 - _TOLERANCE) * target <= spent <= target or upper < (1 + 0.1 * _TOLERANCE) * lower:
            break
        sigma *= (spent / ((1 - 0.3 * _TOLERANCE) * target)) ** _POWER
        if not lower < sigma < upper:
            sigma = 0.5 * (lower + upper)
    return at(upper)


def least_gaussian_noise(
    at: Callable[[float], PrivateKnnSteps], target: float, delta: float
) -> float:
    """Return the least noise, to 0.03 %, at which sampled Gaussian steps fit. It is quick, and
    never below the noise that exact steps need.

    Args:
        at: function from a noise of the votes to the steps.
        target: total epsilon.
        delta: total delta.

    Raises:
        CalibrationFailed: no noise up to 1e5 votes is enough.
    """
    lower, upper = 0.0, 1.0
    while epsilon_of_noisy_votes(at(upper), delta=delta) > target:
        lower, upper = upper, 4 * upper
        if upper > _LARGEST:
            raise CalibrationFailed(
                f"no noise up to {_LARGEST:g} votes brings {at(1.0).answers} answers to "
                f"epsilon={target:g}, delta={delta:g}; "
                "ask fewer queries or sample fewer records"
            )
    while upper > 1.0003 * lower and upper > _LEAST:
        middle = 0.5 * upper if lower == 0 else math.sqrt(lower * upper)
        lower, upper = (
            (lower, middle)
            if epsilon_of_noisy_votes(at(middle), delta=delta) <= target
            else (middle, upper)
        )
    return upper
