"""The power network: analytic Jacobians and log-det gradients against autograd on the whole map;
training lowers its loss.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from reticent.published.density import KernelDensity
from reticent.published.power_network import (
    PowerConfig,
    PowerNetwork,
    log_det_gradient,
    log_det_gradients,
    train_power,
)


def network(seed: int, dimension: int, hidden: tuple[int, ...], power: int) -> PowerNetwork:
    torch.manual_seed(seed)
    made = PowerNetwork(dimension, hidden, power).double()
    with torch.no_grad():
        made.directions.mul_(dimension)
        made.matrix.add_(0.3 * torch.randn(dimension, dimension, dtype=torch.float64))
    return made


@pytest.mark.parametrize("case", range(20))
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


def test_rows_do_not_depend_on_their_batch() -> None:
    made = network(1, 4, (8,), 2)
    rows = torch.rand(1500, 4, dtype=torch.float64)
    whole = log_det_gradients(made, rows.numpy())
    np.testing.assert_allclose(
        whole[700:705], log_det_gradient(made, rows[700:705]).numpy(), rtol=1e-12
    )


def test_a_singular_jacobian_is_not_finite_for_its_own_row_alone() -> None:
    made = PowerNetwork(2, (2,), 1).double()
    with torch.no_grad():
        made.directions.zero_()
        made.matrix.zero_()
    assert not torch.isfinite(log_det_gradient(made, torch.rand(3, 2, dtype=torch.float64))).any()


def blobs() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    labels = np.arange(400) % 2
    return random.normal(size=(400, 3)) * 0.2 + labels[:, None], labels


def test_training_lowers_both_losses_and_repeats() -> None:
    rows, labels = blobs()
    density = KernelDensity(rows, 0.3)
    config = PowerConfig(steps=150, batch_size=100, learning_rate=1e-2)
    first = train_power(rows, labels, config, density=density)
    assert len(first.privacy_losses) == 150
    assert np.mean(first.privacy_losses[-20:]) < 0.97 * first.privacy_losses[0]
    assert np.mean(first.utility_losses[-20:]) < 0.5 * first.utility_losses[0]
    again = train_power(rows, labels, config, density=density)
    np.testing.assert_array_equal(first.network.embed(rows), again.network.embed(rows))


def test_without_the_privacy_loss_the_privacy_loss_is_only_watched() -> None:
    rows, labels = blobs()
    density = KernelDensity(rows, 0.3)
    with_loss = train_power(
        rows, labels, PowerConfig(steps=150, learning_rate=1e-2), density=density
    )
    without = train_power(
        rows, labels, PowerConfig(steps=150, learning_rate=1e-2, private=False), density=density
    )
    assert np.mean(with_loss.privacy_losses[-20:]) < np.mean(without.privacy_losses[-20:])
