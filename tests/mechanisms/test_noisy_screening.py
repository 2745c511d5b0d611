"""The screening bit: its distribution, its cost, and what it refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from reticent.accounting import PoissonSampled, RdpAccountant
from reticent.core import AddRemove
from reticent.mechanisms import NoisyScreening
from reticent.noise import SecureSampler, SeededSampler


def _screening(**changes: object) -> NoisyScreening:
    settings = {
        "neighbours": 30,
        "threshold": 18.0,
        "sigma": 6.0,
        "sampling_probability": 0.15,
        "delta": 1e-5,
        **changes,
    }
    return NoisyScreening(**settings)


def _pass_probability(votes: int, threshold: float, sigma: float) -> float:
    values = np.arange(-200, 201)
    distribution = np.exp(-(values**2) / (2 * sigma**2))
    return float(distribution[votes + values >= threshold].sum() / distribution.sum())


# False-alarm rate 1e-6 each; seeded.
@pytest.mark.parametrize(("votes", "threshold"), [(0, 18.0), (17, 17.5), (30, 18.0)])
def test_passes_as_often_as_the_discrete_gaussian_says(votes: int, threshold: float) -> None:
    runs = 100_000
    passed = int(
        _screening(threshold=threshold)
        .release(np.full(runs, votes), sampler=SeededSampler(4))
        .sum()
    )
    assert stats.binomtest(passed, runs, _pass_probability(votes, threshold, 6.0)).pvalue > 1e-6
    assert stats.binomtest(passed, runs, _pass_probability(votes, threshold, 3.0)).pvalue < 1e-6


def test_the_cost_is_that_of_the_worst_pair_of_counts() -> None:
    screening = _screening(sampling_probability=1.0)
    pure = max(
        abs(math.log(a / b))
        for t in range(30)
        for a, b in [
            (_pass_probability(t, 18.0, 6.0), _pass_probability(t + 1, 18.0, 6.0)),
            (1 - _pass_probability(t, 18.0, 6.0), 1 - _pass_probability(t + 1, 18.0, 6.0)),
        ]
    )
    assert screening.guarantee.adjacency == AddRemove(1)
    assert 0.3 * pure < screening.guarantee.epsilon <= pure


def test_sampling_makes_it_cheaper_and_the_event_says_the_same() -> None:
    whole, sampled = _screening(sampling_probability=1.0), _screening()
    assert sampled.guarantee.epsilon < 0.5 * whole.guarantee.epsilon
    assert isinstance(sampled.event.cost, PoissonSampled)
    counted = RdpAccountant(AddRemove(1)).compose(sampled.event).epsilon(delta=1e-5)
    # The accountant has fewer orders, so it may say more, but not much.
    assert 0.999 < counted / sampled.guarantee.epsilon < 1.3


def test_thresholds_far_away_pass_all_or_none() -> None:
    assert _screening(threshold=-1e300).release([0, 30], sampler=SecureSampler()).all()
    assert not _screening(threshold=1e300).release([0, 30], sampler=SecureSampler()).any()
    assert _screening().release([], sampler=SecureSampler()).shape == (0,)
