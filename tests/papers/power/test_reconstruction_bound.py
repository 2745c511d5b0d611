"""The bound against the case where everything is known: Gaussian rows, and the best estimator
there is.
"""

from __future__ import annotations

import numpy as np
import pytest

from papers.power.reconstruction_bound import reconstruction_bound, smoothed
from reticent.published.density import KernelDensity, fisher_bound


@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_the_best_estimator_of_gaussian_rows_stays_above(epsilon: float) -> None:
    """x ~ N(0, 1), z = x + Laplace(1 / epsilon): the posterior mean by quadrature is the best
    estimate there is.
    """
    random = np.random.default_rng(0)
    x = random.normal(size=20_000)
    z = x + random.laplace(scale=1 / epsilon, size=len(x))
    grid = np.linspace(-7, 7, 1401)
    prior = np.exp(-0.5 * grid**2)
    weight = prior * np.exp(-epsilon * np.abs(z[:, None] - grid))
    best = (weight @ grid) / weight.sum(axis=1)
    error = float(np.square(best - x).mean())
    bound = reconstruction_bound(1, lipschitz_epsilon=epsilon, prior_information=1.0)
    assert bound <= error * 1.02  # standard error of the mean: 1 %
    assert error <= 2.5 * bound  # and it is not idle


def test_with_a_density_estimate_the_bound_never_exceeds_the_error_of_one_who_is_told_the_row() -> (
    None
):
    rows = np.random.default_rng(1).random((500, 3))
    for bandwidth in (0.01, 0.3):
        information = fisher_bound(KernelDensity(rows, bandwidth))
        moved = smoothed(np.repeat(rows, 40, axis=0), bandwidth=bandwidth, seed=0)
        told = float(np.square(moved - np.repeat(rows, 40, axis=0)).sum(axis=1).mean())
        for epsilon in (1e-6, 1.0, 100.0):
            bound = reconstruction_bound(
                3, lipschitz_epsilon=epsilon, prior_information=information
            )
            assert bound <= told * 1.03  # standard error of the mean: 0.6 %


def test_smoothed_rows_have_the_bandwidths_variance() -> None:
    moved = smoothed(np.zeros((50_000, 2)), bandwidth=0.3, seed=0)
    assert moved.var() == pytest.approx(0.09, rel=0.02)
