"""The Laplace form of the test: threshold by exact tail, never above the optimal test."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import stats

from reticent.core import Neighborhood, Norm
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.mechanisms import LaplaceMechanism, LaplaceTestRelease, optimal_test
from reticent.noise import SecureSampler, SeededSampler

NEAR = Neighborhood(Norm.LINF, 0.5, "embedding")
INNER = LaplaceMechanism(sensitivity=1.0, epsilon=1.0, dimension=2, adjacency=NEAR)


def release(**changes) -> LaplaceTestRelease:
    settings = {
        "radius": 0.5,
        "tolerance": 0.0,
        "proposal": 2.0,
        "epsilon_test": 1.0,
        "delta_test": 0.05,
        "inner": INNER,
        **changes,
    }
    return LaplaceTestRelease(**settings)


@pytest.mark.parametrize("delta", [1e-300, 1e-9, 0.05, 0.4, 0.49999])
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 40.0])
def test_threshold_is_the_least_with_tail_delta(epsilon: float, delta: float) -> None:
    mechanism = release(epsilon_test=epsilon, delta_test=delta)
    with mpmath.workdps(50):
        q = mpmath.exp(-1 / mpmath.mpf(mechanism._steps_scale))
        tail = [q ** (mechanism._steps_threshold + k) / (1 + q) for k in (1, -2000)]
        assert tail[0] <= delta
        # Not wastefully high: 2000 of about 2^20 steps lower it would be too low.
        assert tail[1] > delta or mechanism._steps_threshold < 2000
    if delta < 0.4:
        assert mechanism.threshold == pytest.approx(
            0.5 / epsilon * np.log(1 / (2 * delta)), rel=1e-4
        )


def test_passes_as_often_as_laplace_noise_says_and_less_than_the_optimal_test() -> None:
    mechanism = release()
    optimal, _ = optimal_test(epsilon=1.0, delta=0.05)
    for level in range(6):
        psi = 0.5 + 0.5 * level
        _, withheld = mechanism.release(
            np.zeros((20_000, 2)), np.full(20_000, psi), sampler=SeededSampler(level)
        )
        expected = stats.laplace(scale=0.5).sf(mechanism.threshold - 0.5 * level)
        assert stats.binomtest(int((~withheld).sum()), 20_000, expected).pvalue > 1e-6
        assert expected <= optimal[level] + 1e-9


def test_unstable_points_pass_with_probability_delta() -> None:
    _, withheld = release().release(
        np.zeros((50_000, 2)), np.full(50_000, 0.5), sampler=SeededSampler(9)
    )
    assert stats.binomtest(int((~withheld).sum()), 50_000, 0.05).pvalue > 1e-6


def test_tolerance_widens_the_noise() -> None:
    assert release(tolerance=0.5).threshold == pytest.approx(2 * release().threshold, rel=1e-5)


def test_refusals_and_edges() -> None:
    for changes in (
        {"delta_test": 0.5},
        {"delta_test": 0.0},
        {"tolerance": -1.0},
        {"epsilon_test": 0.0},
        {"proposal": 3.0},
    ):
        with pytest.raises(InvalidParameter):
            release(**changes)
    with pytest.raises(InvalidInput):
        release().release(np.zeros((2, 2)), [0.5], sampler=SecureSampler())
    with pytest.raises(InvalidInput):
        release().release(np.zeros((1, 2)), [float("nan")], sampler=SecureSampler())
    values, withheld = release().release(np.zeros((0, 2)), np.zeros(0), sampler=SecureSampler())
    assert values.shape == (0, 2)
    assert withheld.shape == (0,)
    assert release().guarantee.epsilon == 2.0
    assert release().event.guarantee.delta == 0.05
