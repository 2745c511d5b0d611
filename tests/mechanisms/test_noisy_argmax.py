"""The noisy label: its distribution, its cost, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from reticent.accounting import PoissonSampled, RdpAccountant
from reticent.core import AddRemove
from reticent.mechanisms import NoisyArgmax
from reticent.noise import SecureSampler, SeededSampler


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


def test_sampling_makes_it_cheaper_and_the_event_says_the_same() -> None:
    whole, sampled = _argmax(sampling_probability=1.0), _argmax()
    assert sampled.guarantee.epsilon < 0.6 * whole.guarantee.epsilon
    assert isinstance(sampled.event.cost, PoissonSampled)
    counted = RdpAccountant(AddRemove(1)).compose(sampled.event).epsilon(delta=1e-5)
    # The accountant has fewer orders, so it may say more, but not much.
    assert 0.999 < counted / sampled.guarantee.epsilon < 1.3


def test_little_noise_returns_the_winner() -> None:
    assert _argmax(sigma=0.1).release(
        [[1, 2, 9], [20, 0, 0]], sampler=SecureSampler()
    ).tolist() == [2, 0]
    assert _argmax().release(np.zeros((0, 3), dtype=int), sampler=SecureSampler()).shape == (0,)
