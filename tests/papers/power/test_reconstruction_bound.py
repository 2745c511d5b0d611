"""The bound against the case where everything is known: Gaussian rows, and the best estimator
there is.
"""

from __future__ import annotations

import numpy as np
import pytest

from papers.power.reconstruction_bound import reconstruction_bound


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
