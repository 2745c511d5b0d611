"""The baseline without certificates, against scipy's Laplace distribution."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from reticent.core import Replace
from reticent.mechanisms import GlobalSensitivityResponse, StabilityResponse
from reticent.noise import SeededSampler


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 2.0, 20.0])
def test_the_distribution_is_that_of_thresholded_laplace_noise(epsilon: float) -> None:
    mechanism = GlobalSensitivityResponse(epsilon=epsilon, adjacency=Replace(1))
    [wrong] = mechanism.flip_probabilities([7])
    np.testing.assert_allclose(wrong, stats.laplace(scale=1 / epsilon).sf(0.5), rtol=1e-9)
    assert (1 - wrong) / wrong <= np.exp(epsilon)
    assert (
        wrong
        >= StabilityResponse(classes=2, epsilon=epsilon, adjacency=Replace(1)).wrong_probabilities[
            0
        ]
    )
    assert mechanism.guarantee.adjacency == Replace(1)


def test_answers_follow_the_distribution() -> None:
    """Binomial test, false-alarm rate 1e-6; two thirds of epsilon is rejected."""
    mechanism = GlobalSensitivityResponse(epsilon=1.5, adjacency=Replace(1))
    wrong = int(
        mechanism.release(
            np.zeros(50_000, int), np.zeros(50_000, int), sampler=SeededSampler(1)
        ).sum()
    )
    assert stats.binomtest(wrong, 50_000, 0.5 * np.exp(-0.75)).pvalue > 1e-6
    assert stats.binomtest(wrong, 50_000, 0.5 * np.exp(-0.5)).pvalue < 1e-6
