"""PATE's noise and what it withholds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from papers.private_knn.pate_rung import noisy_winners, pate_steps
from papers.private_knn.rung_rows import DELTA
from reticent.accounting import private_knn_total


@pytest.mark.parametrize("threshold", [None, 0.5])
def test_the_noise_meets_the_total(threshold: float | None) -> None:
    steps = pate_steps(1.0, 100, 50, threshold)
    assert steps.sampling_probability == 1.0
    assert 0.98 < private_knn_total(steps, delta=DELTA).epsilon <= 1.0
    assert steps.threshold == (None if threshold is None else 25.0)


def test_labels_without_a_majority_are_withheld() -> None:
    shares = np.array([[0.9, 0.1], [0.45, 0.55], [0.3, 0.7]])
    quiet = replace(pate_steps(1.0, 3, 10, 0.6), sigma_votes=1e-9, sigma_screening=1e-9)
    assert noisy_winners(shares, quiet, 0.1, 0).tolist() == [0, -1, 1]
    all_answered = replace(quiet, threshold=None, sigma_screening=None)
    assert noisy_winners(shares, all_answered, 0.1, 0).tolist() == [0, 1, 1]


def test_noise_is_in_votes() -> None:
    """Two counts that differ by d votes are swapped with probability Phi(-d / (sqrt 2 sigma))."""
    steps = replace(pate_steps(1.0, 3, 10, None), sigma_votes=2.0)
    shares = np.tile([0.6, 0.4], (100_000, 1))
    swapped = (noisy_winners(shares, steps, 0.1, 0) == 1).mean()
    # Phi(-2 / (2 sqrt 2)) = Phi(-.7071) = .23975; a standard error is .00135.
    assert abs(swapped - 0.23975) < 0.006
