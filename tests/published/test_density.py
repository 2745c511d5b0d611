"""Density estimates against closed forms: mixtures of Gaussians, differences of the logarithm,
integrals.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from papers.power.reconstruction_bound import fisher_bound
from reticent.published.density import KernelDensity


def test_is_the_mixture_of_gaussians_that_it_says() -> None:
    random = np.random.default_rng(0)
    centers, rows = random.normal(size=(30, 3)), 2.0 * random.normal(size=(11, 3))
    density = KernelDensity(centers, 0.7)
    parts = np.stack([multivariate_normal(center, 0.49).pdf(rows) for center in centers])
    log_density, score = density.evaluate(rows)
    np.testing.assert_allclose(np.exp(log_density), parts.mean(axis=0), rtol=1e-12)
    gradient = (
        np.einsum("kn,knd->nd", parts, (centers[:, None] - rows) / 0.49)
        / parts.sum(axis=0)[:, None]
    )
    np.testing.assert_allclose(score, gradient, rtol=1e-10, atol=1e-12)


def test_the_variance_constant_is_the_papers() -> None:
    density = KernelDensity(np.zeros((10, 3)), 0.5)
    assert np.exp(density.log_variance_constant) == pytest.approx(
        1 / (2**3 * np.pi**1.5) / (10 * 0.5**3)
    )
    grid = np.arange(-10, 10, 0.01)  # mu_K in one dimension, by summing the squared kernel
    kernel = np.exp(-0.5 * grid**2) / np.sqrt(2 * np.pi)
    assert kernel.sum() * 0.01 == pytest.approx(1.0)
    assert np.square(kernel).sum() * 0.01 == pytest.approx(1 / (2 * np.sqrt(np.pi)))


@pytest.mark.parametrize(
    ("spread", "attained"), [(0.0, 1.0), (0.5, None), (2.0, None), (50.0, 1.0)]
)
def test_fisher_bound_is_never_below_the_information_by_quadrature(
    spread: float, attained: float | None
) -> None:
    bandwidth = 0.4
    density = KernelDensity(spread * np.array([[0.0], [0.3], [1.0]]) + 1.0, bandwidth)
    grid = np.arange(-4.0, 4.0 + spread + 1, 1e-3)
    parts = np.exp(-0.5 * ((grid - density.centers) / bandwidth) ** 2) / (
        bandwidth * np.sqrt(2 * np.pi)
    )
    value = parts.mean(axis=0)
    slope = (parts * (density.centers - grid) / bandwidth**2).mean(axis=0)
    information = float((np.square(slope) / np.maximum(value, 1e-300)).sum() * 1e-3)
    bound = fisher_bound(density)
    assert 0 < information <= bound * (1 + 1e-6)
    if attained is not None:
        assert information == pytest.approx(attained * bound, rel=1e-3)
