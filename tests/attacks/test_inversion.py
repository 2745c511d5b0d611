"""Newton gives rows back from a published encoder, and not from noise."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from reticent.attacks.inversion import invert, relative_errors
from reticent.core.errors import InvalidInput
from reticent.training.power import PowerNetwork


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


def test_noise_ends_it_and_withheld_rows_stay_unknown() -> None:
    torch.manual_seed(0)
    network = PowerNetwork(6, (4,), 1)
    rows = np.random.default_rng(1).uniform(0, 1, (50, 6))
    released = network.embed(rows)
    noisy = released + np.random.default_rng(2).normal(size=released.shape)
    noisy[3] = np.nan
    errors = relative_errors(invert(network, noisy), rows)
    assert np.isnan(errors[3])
    assert np.nanmedian(errors) > 0.3


def test_refuses_another_width() -> None:
    with pytest.raises(InvalidInput, match="released: expected 6 features"):
        invert(PowerNetwork(6, (4,), 1), np.ones((2, 5)))
