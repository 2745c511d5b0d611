"""Exact answers or none: the test's inequalities, its comparison with Laplace noise, and what
comes out.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from reticent.core import AddRemove
from reticent.mechanisms import DistanceToInstability
from reticent.noise import SecureSampler, SeededSampler


def mechanism(epsilon: float = 1.0, delta: float = 1e-3) -> DistanceToInstability:
    return DistanceToInstability(epsilon=epsilon, delta=delta, adjacency=AddRemove(1))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.2])
def test_neighbouring_distances_are_within_epsilon_and_delta(epsilon: float, delta: float) -> None:
    passing = mechanism(epsilon, delta).pass_probabilities
    growth = math.exp(epsilon) * (1 + 1e-12)
    assert passing[0] <= delta
    assert passing[-1] == 1.0
    assert (passing[1:] <= growth * passing[:-1] + delta).all()
    # 1 - p is rounded here; the mechanism itself keeps the smaller side.
    assert (1 - passing[:-1] <= growth * (1 - passing[1:] + 2**-52) + delta).all()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_it_passes_at_least_as_often_as_laplace_noise(epsilon: float) -> None:
    delta = 1e-3
    passing = mechanism(epsilon, delta).pass_probabilities
    threshold = math.log(1 / (2 * delta)) / epsilon
    laplace = stats.laplace(loc=np.arange(len(passing)), scale=1 / epsilon).sf(threshold)
    assert (passing >= laplace - 1e-12).all()


def test_answers_come_out_as_they_are_or_not_at_all() -> None:
    top = mechanism().max_level
    levels = np.array([top, top + 50, 0, top])
    labels, withheld = mechanism().release([3, 1, 2, 7], levels, sampler=SecureSampler())
    assert labels[[0, 1, 3]].tolist() == [3, 1, 7]
    vectors, _ = mechanism(delta=1e-12).release(
        np.ones((4, 2)), np.zeros(4, int), sampler=SecureSampler()
    )
    assert np.isnan(vectors).all()
    assert withheld.tolist()[:2] == [False, False]


def test_withholding_follows_the_distribution() -> None:
    """Binomial test, false-alarm rate 1e-6; the next level's chance is rejected."""
    passing = mechanism(1.0, 0.05).pass_probabilities
    _, withheld = mechanism(1.0, 0.05).release(
        np.zeros(40_000, int), np.full(40_000, 2), sampler=SeededSampler(0)
    )
    released = 40_000 - int(withheld.sum())
    assert stats.binomtest(released, 40_000, passing[2]).pvalue > 1e-6
    assert stats.binomtest(released, 40_000, passing[1]).pvalue < 1e-6
