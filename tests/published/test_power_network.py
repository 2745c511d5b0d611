"""The power network: analytic Jacobians and log-det gradients against autograd on the whole map;
training lowers its loss.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from reticent.published.power_network import PowerNetwork, log_det_gradient


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
