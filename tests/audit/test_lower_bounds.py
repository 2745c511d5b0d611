"""The lower bound itself: limits against exact binomials, coverage, and pairs whose epsilon is
known.
"""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import stats

from reticent.audit import binomial_limits, epsilon_lower_bound
from reticent.core.errors import InvalidInput, InvalidParameter


@pytest.mark.parametrize(
    ("successes", "trials"),
    [(0, 10), (10, 10), (3, 10), (1, 10**6), (999_999, 10**6), (4000, 10**5)],
)
def test_limits_are_clopper_and_pearsons(successes: int, trials: int) -> None:
    low, high = (float(v) for v in binomial_limits(successes, trials, level=0.01))
    exact = stats.binomtest(successes, trials).proportion_ci(confidence_level=0.98, method="exact")
    assert (low, high) == (
        pytest.approx(exact.low, rel=1e-9, abs=1e-15),
        pytest.approx(exact.high, rel=1e-9),
    )
    if 0 < successes < trials <= 10:
        with mpmath.workdps(30):
            assert float(
                mpmath.betainc(successes, trials - successes + 1, 0, low, regularized=True)
            ) == pytest.approx(0.01)


def test_limits_cover() -> None:
    rng = np.random.default_rng(0)
    for p in (0.001, 0.1, 0.7):
        low, high = binomial_limits(rng.binomial(500, p, 20_000), 500, level=0.05)
        assert (low > p).mean() <= 0.055
        assert (high < p).mean() <= 0.055


@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_a_pair_without_difference_gives_nothing(delta: float) -> None:
    rng = np.random.default_rng(1)
    found = [
        epsilon_lower_bound(*rng.normal(size=(2, 2000)), delta=delta, confidence=0.9).epsilon_lower
        for _ in range(100)
    ]
    # Any positive bound is a false alarm; at most one in ten may be.
    assert np.mean(np.array(found) > 0) <= 0.1 + 0.08


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_randomised_response_is_found_and_never_exceeded_beyond_the_confidence(
    epsilon: float,
) -> None:
    rng = np.random.default_rng(2)
    truth = np.exp(epsilon) / (1 + np.exp(epsilon))
    found = []
    for _ in range(100):
        first, second = rng.random(20_000) < truth, rng.random(20_000) < 1 - truth
        found.append(epsilon_lower_bound(first, second, delta=0.0, confidence=0.95).epsilon_lower)
    assert np.mean(np.array(found) > epsilon) <= 0.05 + 0.06
    assert np.median(found) > 0.85 * epsilon


def test_delta_is_granted() -> None:
    rng = np.random.default_rng(3)
    # One in a hundred first answers gives everything away: epsilon is infinite at delta 0, and 0 at
    # delta 0.01.
    first = (rng.random(100_000) < 0.01).astype(float)
    second = np.zeros(100_000)
    assert epsilon_lower_bound(first, second, delta=0.0, confidence=0.99).epsilon_lower > 3
    assert epsilon_lower_bound(first, second, delta=0.01, confidence=0.99).epsilon_lower == 0.0


def test_both_directions_are_looked_at() -> None:
    rng = np.random.default_rng(4)
    rare, never = (rng.random(100_000) < 0.01).astype(float), np.zeros(100_000)
    assert epsilon_lower_bound(never, -rare, delta=0.0, confidence=0.99).epsilon_lower > 3
    assert epsilon_lower_bound(rare, never, delta=0.0, confidence=0.99).epsilon_lower > 3


def test_infinite_scores_are_allowed_and_the_result_refutes() -> None:
    first, second = np.full(1000, np.inf), np.full(1000, -np.inf)
    result = epsilon_lower_bound(first, second, delta=0.0, confidence=0.95)
    assert result.refutes(1.0)
    assert not result.refutes(20.0)
    assert result.runs == 1000


@pytest.mark.parametrize(
    ("first", "second"),
    [([1.0] * 99, [1.0] * 99), ([1.0] * 200, [1.0] * 100), ([[1.0] * 200], [[1.0] * 200])],
)
def test_bad_scores(first, second) -> None:
    with pytest.raises(InvalidInput):
        epsilon_lower_bound(first, second, delta=0.0, confidence=0.95)


def test_bad_parameters() -> None:
    scores = np.zeros(200)
    with pytest.raises(InvalidInput):
        epsilon_lower_bound(scores, np.full(200, np.nan), delta=0.0, confidence=0.95)
    for settings in (
        {"delta": 1.0, "confidence": 0.9},
        {"delta": 0.0, "confidence": 1.0},
        {"delta": 0.0, "confidence": 0.0},
    ):
        with pytest.raises(InvalidParameter):
            epsilon_lower_bound(scores, scores, **settings)
    with pytest.raises(InvalidParameter):
        binomial_limits([1], 0, level=0.1)
