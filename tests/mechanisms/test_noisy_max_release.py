"""The noisy maximum: its distribution against brute force and sampling, its guarantee over
neighbours, its edges.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from reticent.core import Neighborhood, Norm
from reticent.mechanisms import StabilityRelease
from reticent.mechanisms.noisy_max_release import NoisyMaxRelease
from reticent.noise import SecureSampler, SeededSampler

NEAR = Neighborhood(Norm.LINF, 0.5, "embedding")


def mechanism(classes: int = 3, epsilon: float = 1.0, sensitivity: float = 1.0) -> NoisyMaxRelease:
    return NoisyMaxRelease(
        classes=classes, sensitivity=sensitivity, epsilon=epsilon, adjacency=NEAR
    )


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_probabilities_match_brute_force(epsilon: float) -> None:
    logits = np.array([0.4, 0.0, -2.3])
    most = int(30 / epsilon)
    weight = np.exp(-epsilon * np.arange(most)) * -np.expm1(-epsilon)
    expected = np.zeros(3)
    noise = np.array(list(itertools.product(range(most), repeat=3)))
    winners = (logits + noise).argmax(axis=1)
    np.add.at(expected, winners, weight[noise].prod(axis=1))
    np.testing.assert_allclose(
        mechanism(epsilon=epsilon).probabilities([logits])[0], expected, atol=1e-5
    )


@pytest.mark.parametrize(
    ("sampler", "draws", "error"),
    [(SeededSampler(3), 40_000, 0.0125), (SecureSampler(), 4_000, 0.04)],
    ids=["seeded", "secure"],
)
def test_released_labels_follow_the_probabilities(
    sampler: SeededSampler | SecureSampler, draws: int, error: float
) -> None:
    # ``error`` is five standard errors of a share: false alarm below 1e-5.
    built = mechanism(classes=4, epsilon=1.5)
    logits = np.array([0.7, 0.7, -0.4, 1.1])
    released = built.release(np.repeat(logits[None], draws, axis=0), sampler=sampler)
    shares = np.bincount(released, minlength=4) / len(released)
    np.testing.assert_allclose(shares, built.probabilities([logits])[0], atol=error)


@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_no_neighbour_changes_a_chance_by_more_than_epsilon(classes: int, epsilon: float) -> None:
    random = np.random.default_rng(classes)
    built = mechanism(classes=classes, epsilon=epsilon)
    logits = random.normal(scale=2.0, size=(400, classes))
    # Moves in [0, 1] per logit change no difference by more than 1; corners are the worst.
    moved = logits + random.integers(0, 2, size=logits.shape)
    here, there = built.probabilities(logits), built.probabilities(moved)
    counted = (
        np.minimum(here, there) > 1e-9
    )  # chances below about e^-40 are cut off in this sum, not in the release
    ratio = np.log(here[counted] / there[counted])
    assert np.abs(ratio).max() <= epsilon * (1 + 1e-9)
    # Power: some pair spends nearly all of it, and half the noise would be caught.
    assert np.abs(ratio).max() >= 0.9 * epsilon


def test_two_classes_equal_stability_release() -> None:
    logits = np.column_stack([np.linspace(-4.3, 4.4, 60), np.zeros(60)])
    stable = StabilityRelease(classes=2, sensitivity=1.0, epsilon=1.0, adjacency=NEAR)
    np.testing.assert_allclose(
        mechanism(classes=2).probabilities(logits), stable.probabilities(logits), atol=1e-6
    )
