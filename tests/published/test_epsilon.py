"""The published per-sample number against an independent script that follows the paper's
formulas step by step.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from reticent.core.errors import InvalidParameter
from reticent.published.density import KernelDensity
from reticent.published.power_network import (
    PowerNetwork,
    log_det_gradients,
    per_sample_epsilon,
)


def by_hand(centers, h, x, gradient, z):
    """Section 4.6, with the kernel that integrates to 1, and nothing in logarithms."""
    n, d = centers.shape
    density, slope = 0.0, np.zeros(d)
    for center in centers:
        u = (x - center) / h
        kernel = math.exp(-float(u @ u) / 2) / (2 * math.pi) ** (d / 2)
        density += kernel / (n * h**d)
        slope += -u / h * kernel / (n * h**d)
    mu = 1 / (2**d * math.pi ** (d / 2))
    half = z * math.sqrt(mu * density / (n * h**d))
    if density <= half:
        return math.inf
    lower = np.linalg.norm(slope / (density - half) - gradient)
    upper = np.linalg.norm(slope / (density + half) - gradient)
    return max(lower, upper) + d * math.sqrt(mu / (n * h**d) / (4 * density)) * z


@pytest.mark.parametrize("dimension", [1, 3, 5])
def test_is_the_papers_formula(dimension: int) -> None:
    random = np.random.default_rng(dimension)
    centers, rows = random.normal(size=(40, dimension)), 1.5 * random.normal(size=(25, dimension))
    torch.manual_seed(0)
    network = PowerNetwork(dimension, (4,), 2).double()
    found = per_sample_epsilon(network, KernelDensity(centers, 0.8), rows, alpha=0.05)
    gradients = log_det_gradients(network, rows)
    z = 1.959963984540054
    expected = [
        by_hand(centers, 0.8, row, gradient, z)
        for row, gradient in zip(rows, gradients, strict=True)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    if dimension == 5:
        assert np.isinf(found).any()
    assert np.isfinite(found).any()


def test_edge_cases_and_refusals() -> None:
    density, near = KernelDensity(np.zeros((9, 2)), 0.5), np.zeros((1, 2))
    network = PowerNetwork(2, (4,), 1).double()
    assert np.isfinite(per_sample_epsilon(network, density, near, alpha=0.05)).all()
    assert np.isinf(per_sample_epsilon(network, density, near + 99.0, alpha=0.05)).all()
    with pytest.raises(InvalidParameter, match="alpha=0"):
        per_sample_epsilon(network, density, near, alpha=0.0)
    with torch.no_grad():
        network.directions.zero_()
        network.matrix.zero_()
    assert np.isinf(per_sample_epsilon(network, density, near, alpha=0.05)).all()
