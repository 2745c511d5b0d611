"""Rivals of the tables: the attack on Table 1 is the exact one, PrivUnit costs its epsilon."""

from __future__ import annotations

import math

import numpy as np
import pytest

from papers.posthoc.algorithm1 import attack
from papers.posthoc.unit_vectors import priv_unit


@pytest.mark.parametrize("shift", [0.5, 3.0])
def test_the_attack_has_the_rates_of_the_best_test(shift) -> None:
    # One coordinate: the ratio favours the moved point beyond half of the way.
    true, false = attack(np.array([shift]), 0)
    wrong = 0.5 * math.exp(-shift / 2)
    # 200,000 draws: five standard errors are below .006, passed in all but 1 of a million runs.
    assert false == pytest.approx(wrong, abs=0.006)
    assert true == pytest.approx(1 - wrong, abs=0.006)


@pytest.mark.parametrize(("size", "epsilon"), [(3, 2.0), (16, 5.0)])
def test_opposite_vectors_are_told_apart_by_epsilon(size: int, epsilon: float) -> None:
    """Fails by chance less than once in 10^6 runs: five standard errors of 200,000 draws."""
    units = np.zeros((200_000, size))
    units[:, 0] = 1.0
    own = priv_unit(units, epsilon=epsilon, seed=0)
    other = priv_unit(-units, epsilon=epsilon, seed=1)
    assert own[:, 0].mean() == pytest.approx(1.0, abs=5 * own[:, 0].std() / np.sqrt(len(own)))
    assert np.ptp(np.linalg.norm(own, axis=1)) < 1e-9
    # the releases of the input fill its cap more densely than those of its opposite
    inside = own[:, 0] > np.quantile(own[:, 0], 0.9)
    least = own[inside, 0].min()
    counts = np.array([inside.sum(), (other[:, 0] >= least).sum()], dtype=float)
    error = np.sqrt((1.0 / counts).sum())
    assert np.log(counts[0] / counts[1]) == pytest.approx(epsilon, abs=5 * error)
