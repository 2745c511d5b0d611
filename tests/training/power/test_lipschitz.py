"""The sorting encoder is 1-Lipschitz; models of noisy columns learn through their noise."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from reticent.core.norms import Norm
from reticent.training.networks import TrainingConfig
from reticent.training.power.lipschitz import (
    SortingNetwork,
    orthonormal,
    train_lipschitz_encoder,
)
from reticent.training.power.reader import train_reader

CONFIG = TrainingConfig(epochs=15, batch_size=100, learning_rate=5e-3)


@pytest.mark.parametrize("shape", [(3, 7), (7, 3), (6, 6), (1, 5)])
@pytest.mark.parametrize("start", ["orthogonal", "normal", "rank one", "zero"])
def test_singular_values_reach_one_and_never_pass_it(shape: tuple[int, int], start: str) -> None:
    torch.manual_seed(0)
    weight = torch.randn(shape, dtype=torch.float64)
    if start == "orthogonal":
        torch.nn.init.orthogonal_(weight)
    elif start == "rank one":
        weight = torch.randn(shape[0], 1, dtype=torch.float64) @ torch.randn(
            1, shape[1], dtype=torch.float64
        )
    elif start == "zero":
        weight = torch.zeros(shape, dtype=torch.float64)
    values = torch.linalg.svdvals(orthonormal(weight))
    assert values.max() <= 1 + 1e-12
    if start == "orthogonal":
        assert values.min() >= 1 - 1e-12


def test_description_computes_the_same() -> None:
    torch.manual_seed(1)
    network = SortingNetwork((9, 8, 6, 2)).double()
    random = np.random.default_rng(0)
    rows = random.normal(size=(2000, 9))
    values = network.description().forward(rows)
    with torch.no_grad():
        np.testing.assert_allclose(values, network(torch.from_numpy(rows)).numpy(), atol=1e-12)


def test_training_finds_the_direction_that_matters() -> None:
    random = np.random.default_rng(0)
    labels = np.arange(2000) % 2
    rows = random.uniform(0, 1, (2000, 20))
    rows[:, 7] = 0.25 + 0.5 * labels + random.uniform(-0.1, 0.1, 2000)
    losses: list[float] = []
    trained = train_lipschitz_encoder(
        rows,
        labels,
        CONFIG,
        sigma=1 / 8,
        gaussian=False,
        outputs=1,
        hidden=(8,),
        report=lambda stage, done, total, loss: losses.append(loss),
    )
    values = trained.forward(rows)[:, 0]
    apart = abs(values[labels == 1].mean() - values[labels == 0].mean())
    assert (
        0.4 < apart <= 0.5 + 0.1
    )  # the two halves are 0.5 apart, and the encoder cannot pull them farther apart
    assert losses[-1] < np.log(2)


def test_readers_of_noisy_columns_learn_a_rule_that_turns_with_a_free_value() -> None:
    """The label is the sign of the first column, turned by u: it alone tells nothing."""
    random = np.random.default_rng(0)
    turned = random.choice([-1.0, 1.0], 2_000)
    near = random.uniform(-4, 4, (2_000, 2))
    labels = (near[:, 0] * turned > 0).astype(np.int64)
    free = np.column_stack([np.ones(2_000), turned])
    reader = train_reader(
        free, near, labels, CONFIG, epsilon=4.0, norm=Norm.L2, hidden=16, answer_unit=3.0
    )
    found = reader.forward(np.column_stack([free, near / 3.0]))
    assert reader.output_dimension == 1
    assert ((found[:, 0] > 0) == labels).mean() > 0.9
