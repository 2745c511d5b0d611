"""Newton gives rows back from a published encoder, and not from noise."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from papers.power.inversion import invert, relative_errors
from reticent.published.power_network import PowerNetwork


@pytest.mark.parametrize("power", [1, 3])
def test_rows_come_back(power: int) -> None:
    torch.manual_seed(power)
    network = PowerNetwork(12, (8,), power)
    with torch.no_grad():
        network.directions.mul_(4 / power)
    rows = np.random.default_rng(0).uniform(0, 1, (600, 12))
    released = network.embed(rows)
    assert relative_errors(released, rows).min() > 0.01  # it is not the identity
    found = invert(network, released.astype(np.float32))
    assert (relative_errors(found, rows) < 1e-4).all()
