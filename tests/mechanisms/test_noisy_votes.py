"""The screening bit and the noisy label of votes: their distributions, and what they cost."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from reticent.accounting import PoissonSampled, RdpAccountant
from reticent.core import AddRemove
from reticent.mechanisms import NoisyArgmax, NoisyScreening
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


@pytest.mark.parametrize(("made", "share"), [("screening", 0.5), ("argmax", 0.6)])
def test_sampling_makes_it_cheaper_and_the_event_says_the_same(made: str, share: float) -> None:
    make = _screening if made == "screening" else _argmax
    whole, sampled = make(sampling_probability=1.0), make()
    assert sampled.guarantee.epsilon < share * whole.guarantee.epsilon
    assert isinstance(sampled.event.cost, PoissonSampled)
    counted = RdpAccountant(AddRemove(1)).compose(sampled.event).epsilon(delta=1e-5)
    # The accountant has fewer orders, so it may say more, but not much.
    assert 0.999 < counted / sampled.guarantee.epsilon < 1.3


def test_thresholds_far_away_pass_all_or_none() -> None:
    assert _screening(threshold=-1e300).release([0, 30], sampler=SecureSampler()).all()
    assert not _screening(threshold=1e300).release([0, 30], sampler=SecureSampler()).any()
    assert _screening().release([], sampler=SecureSampler()).shape == (0,)


def _argmax(**changes: object) -> NoisyArgmax:
    settings = {
        "classes": 3,
        "neighbours": 20,
        "sigma": 3.0,
        "sampling_probability": 0.15,
        "delta": 1e-5,
        **changes,
    }
    return NoisyArgmax(**settings)


def _distribution(votes: list[int], sigma: float) -> np.ndarray:
    """By enumeration of all noises within ten sigma."""
    reach = int(10 * sigma)
    values = np.arange(-reach, reach + 1)
    distribution = np.exp(-(values**2) / (2 * sigma**2))
    distribution /= distribution.sum()
    a, b, c = (values + count for count in votes)
    joint = distribution[:, None, None] * distribution[None, :, None] * distribution[None, None, :]
    first = (a[:, None, None] >= b[None, :, None]) & (a[:, None, None] >= c[None, None, :])
    second = ~first & (b[None, :, None] >= c[None, None, :])
    return np.array([joint[first].sum(), joint[second].sum(), joint[~first & ~second].sum()])


# False-alarm rate 1e-6 each; seeded.
@pytest.mark.parametrize("votes", [[7, 7, 6], [10, 9, 1], [0, 0, 0]])
def test_labels_are_as_frequent_as_enumeration_says(votes: list[int]) -> None:
    runs = 60_000
    labels = _argmax().release(np.tile(votes, (runs, 1)), sampler=SeededSampler(5))
    seen = np.bincount(labels, minlength=3)
    assert stats.chisquare(seen, runs * _distribution(votes, 3.0)).pvalue > 1e-6
    if max(votes) > 0:
        assert stats.chisquare(seen, runs * _distribution(votes, 1.5)).pvalue < 1e-6


def test_little_noise_returns_the_winner() -> None:
    assert _argmax(sigma=0.1).release(
        [[1, 2, 9], [20, 0, 0]], sampler=SecureSampler()
    ).tolist() == [2, 0]
    assert _argmax().release(np.zeros((0, 3), dtype=int), sampler=SecureSampler()).shape == (0,)
