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


@pytest.mark.parametrize("power", [2])
def test_public_rows_tell_which_of_several_preimages_is_a_row(power: int) -> None:
    """The identity plus a steep bend has several preimages; only one of them lies among the
    rows.
    """
    torch.manual_seed(0)
    network = PowerNetwork(4, (6,), power)
    with torch.no_grad():
        network.directions.mul_(6 / power)
        for layer in network.layers:
            layer.weight.mul_(2)
    random = np.random.default_rng(3)
    rows, public = random.uniform(0, 1, (400, 4)), random.uniform(0, 1, (3000, 4))
    released = network.embed(rows)
    alone = relative_errors(invert(network, released), rows)
    assert (alone > 1e-3).mean() > 0.05  # some end elsewhere
    found = invert(network, released, public=public)
    assert (relative_errors(found, rows) < 1e-3).mean() > (alone < 1e-3).mean() + 0.4
    plausible = ((found > -1e-3) & (found < 1 + 1e-3)).all(
        axis=1
    )  # what is left over: two preimages inside the box
    assert plausible.mean() > 0.9
