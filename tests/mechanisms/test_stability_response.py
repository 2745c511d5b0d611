"""Stability response: the ratio constraints in high precision, optimality against a linear
program, its distribution.
"""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import optimize, stats

from reticent.core import AddRemove
from reticent.mechanisms import StabilityResponse
from reticent.noise import SecureSampler, SeededSampler

SETTINGS = [(c, e) for c in (2, 3, 10, 1000) for e in (1e-2, 0.1, 0.5, 1.0, 3.0, 12.0)]


def response(classes: int = 3, epsilon: float = 1.0) -> StabilityResponse:
    return StabilityResponse(classes=classes, epsilon=epsilon, adjacency=AddRemove(1))


@pytest.mark.parametrize(("classes", "epsilon"), [*SETTINGS, (2, 800.0), (10, 50.0)])
def test_ratios_hold_in_high_precision(classes: int, epsilon: float) -> None:
    mechanism = response(classes, epsilon)
    with mpmath.workdps(60):
        grow = mpmath.exp(mpmath.mpf(epsilon))
        q = [mpmath.mpf(float(v)) for v in mechanism.wrong_probabilities]
        p = [1 - (classes - 1) * v for v in q]
        assert p[0] <= grow * q[0]
        for k in range(len(q) - 1):
            assert q[k + 1] <= q[k] <= grow * q[k + 1]
            assert p[k] <= p[k + 1] <= grow * p[k]
        # What the coin really uses for the label itself is a double; its error is charged.
        for ours, truth in zip(mechanism.right_probabilities, p, strict=True):
            assert abs(mpmath.mpf(float(ours)) / truth - 1) < 2.0**-42
    assert len(q) - 1 == mechanism.max_level


@pytest.mark.parametrize(
    ("classes", "epsilon"), [(2, 0.7), (3, 0.2), (10, 0.3), (10, 1.0), (100, 0.5)]
)
def test_no_response_is_right_more_often_at_any_level(classes: int, epsilon: float) -> None:
    ours = response(classes, epsilon).wrong_probabilities[:12]
    levels, others, grow = len(ours), classes - 1, np.exp(epsilon)
    rows, bounds = [], []
    one = np.zeros(levels)
    one[0] = -(grow + others)  # 1 - others q_0 <= grow q_0
    rows.append(one)
    bounds.append(-1.0)
    for k in range(levels - 1):
        for here, there in ((k, k + 1), (k + 1, k)):
            ratio = np.zeros(levels)
            ratio[here], ratio[there] = 1.0, -grow  # q_here <= grow q_there
            rows.append(ratio)
            bounds.append(0.0)
            trust = np.zeros(levels)
            trust[here], trust[there] = -others, grow * others  # p_here <= grow p_there
            rows.append(trust)
            bounds.append(grow - 1.0)
    for level in range(levels):
        target = np.zeros(levels)
        target[level] = 1.0
        best = optimize.linprog(
            target, A_ub=np.array(rows), b_ub=bounds, bounds=[(0, 1)] * levels, method="highs"
        )
        assert ours[level] == pytest.approx(best.fun, rel=1e-6, abs=1e-9)


def test_answers_follow_the_distribution() -> None:
    mechanism = response(4, 0.8)
    for level in (0, 2):
        answers = mechanism.release(
            np.full(100_000, 2), np.full(100_000, level), sampler=SeededSampler(level)
        )
        q = mechanism.wrong_probabilities[level]
        expected = np.full(4, q)
        expected[2] = 1 - 3 * q
        assert stats.chisquare(np.bincount(answers, minlength=4), 100_000 * expected).pvalue > 1e-6
        less = response(4, 0.8 * 2 / 3).wrong_probabilities[level]
        wrong = np.full(4, less)
        wrong[2] = 1 - 3 * less
        assert stats.chisquare(np.bincount(answers, minlength=4), 100_000 * wrong).pvalue < 1e-6


def test_the_least_epsilon_is_answered_in_bounded_time() -> None:
    mechanism = StabilityResponse(classes=3, epsilon=1e-6, adjacency=AddRemove())
    assert mechanism.max_level == 2**20 - 1
    growth = mechanism.wrong_probabilities[:-1] / mechanism.wrong_probabilities[1:]
    assert growth.max() <= np.exp(1e-6)
    assert (np.diff(mechanism.right_probabilities) >= 0).all()
    assert mechanism.release([0, 1, 2], [0, 2**20, 2**40], sampler=SecureSampler()).shape == (3,)
