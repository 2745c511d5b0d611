"""The power network: analytic Jacobians and log-det gradients against autograd on the whole map,
and the published per-sample number against the paper's formulas, step by step.
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
    log_det_gradient,
    log_det_gradients,
    per_sample_epsilon,
)


def network(seed: int, dimension: int, hidden: tuple[int, ...], power: int) -> PowerNetwork:
    torch.manual_seed(seed)
    made = PowerNetwork(dimension, hidden, power).double()
    with torch.no_grad():
        made.directions.mul_(dimension)
        made.matrix.add_(0.3 * torch.randn(dimension, dimension, dtype=torch.float64))
    return made


@pytest.mark.parametrize("case", range(5))
def test_log_det_gradient_is_autograds_on_the_full_jacobian(case: int) -> None:
    random = np.random.default_rng(case)
    dimension, power = int(random.integers(2, 6)), int(random.integers(1, 4))
    hidden = tuple(int(width) for width in random.integers(2, 6, size=random.integers(1, 3)))
    made = network(case, dimension, hidden, power)
    rows = torch.from_numpy(random.uniform(-1, 1, (3, dimension)))

    def log_det(
        row: torch.Tensor,
    ) -> torch.Tensor:  # of the whole map at once: log |det| of a product is the sum
        jacobian = torch.func.jacrev(lambda x: made(x[None])[0])(row)
        return torch.linalg.slogdet(jacobian).logabsdet

    expected = torch.stack([torch.func.grad(log_det)(row) for row in rows])
    torch.testing.assert_close(log_det_gradient(made, rows), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("power", [1, 3])
def test_step_is_the_map_and_its_jacobian(power: int) -> None:
    made = network(0, 5, (4, 3), power)
    rows = torch.rand(6, 5, dtype=torch.float64)
    image, parts = made.jacobians(rows)
    torch.testing.assert_close(image, made(rows))
    whole = torch.eye(5, dtype=torch.float64)
    for part in parts:
        whole = part @ whole
    expected = torch.stack([torch.func.jacrev(lambda x: made(x[None])[0])(row) for row in rows])
    torch.testing.assert_close(whole, expected)
    np.testing.assert_allclose(made.embed(rows.numpy()), image.detach().numpy())


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
    made = PowerNetwork(dimension, (4,), 2).double()
    found = per_sample_epsilon(made, KernelDensity(centers, 0.8), rows, alpha=0.05)
    gradients = log_det_gradients(made, rows)
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
    made = PowerNetwork(2, (4,), 1).double()
    assert np.isfinite(per_sample_epsilon(made, density, near, alpha=0.05)).all()
    assert np.isinf(per_sample_epsilon(made, density, near + 99.0, alpha=0.05)).all()
    with pytest.raises(InvalidParameter, match="alpha=0"):
        per_sample_epsilon(made, density, near, alpha=0.0)
    with torch.no_grad():
        made.directions.zero_()
        made.matrix.zero_()
    assert np.isinf(per_sample_epsilon(made, density, near, alpha=0.05)).all()
