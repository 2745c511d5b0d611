"""The constant of the published encoder covers its Jacobians."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from papers.power.published_bound import power_bound
from reticent.core import Box
from reticent.published.power_network import PowerNetwork


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("hidden", [(6,), (5, 4)])
def test_power_constant_covers_jacobians_and_quotients_over_the_box(
    power: int, hidden: tuple[int, ...]
) -> None:
    torch.manual_seed(power)
    network = PowerNetwork(5, hidden, power).double()
    with torch.no_grad():
        network.directions.mul_(4)
    box = Box(np.array([0.0, -1, 0, 0.2, 0]), np.array([1.0, 0, 0.5, 0.3, 0.7]))
    bound = power_bound(network, box)
    rows = np.random.default_rng(0).uniform(box.lower, box.upper, (4000, 5))
    _, parts = network.jacobians(torch.from_numpy(rows))
    whole = parts[0]
    for part in parts[1:]:
        whole = part @ whole
    steepest = torch.linalg.matrix_norm(whole, 2).max().item()
    assert steepest <= bound
    image = network.embed(rows)
    quotient = np.linalg.norm(image[1:] - image[:-1], axis=1) / np.linalg.norm(
        rows[1:] - rows[:-1], axis=1
    )
    assert quotient.max() <= bound
    assert bound < (5 if power == 1 else 50) * steepest  # a bound that says something
