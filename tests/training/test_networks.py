"""The shared pieces of training: networks, checked labels, the loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from reticent.core.errors import InvalidInput
from reticent.training.networks import TrainingConfig, labelled, minimise, relu_network, rescale


def test_relu_network_has_linear_ends() -> None:
    kinds = [type(layer) for layer in relu_network([3, 4, 5, 2])]
    assert kinds == [nn.Linear, nn.ReLU, nn.Linear, nn.ReLU, nn.Linear]


def test_rescale_multiplies_outputs() -> None:
    network = relu_network([2, 3, 2])
    points = torch.randn(5, 2)
    before = network(points)
    rescale(network, torch.tensor(0.5))
    torch.testing.assert_close(network(points), before * 0.5)


def test_data_that_cannot_be_trained_on() -> None:
    two = np.zeros((2, 1))
    for embeddings, labels in (
        *(
            (np.zeros(3), [0, 1, 1]),
            (np.zeros((0, 2)), np.zeros(0, int)),
            ([[np.nan], [0]], [0, 1]),
        ),
        *((two, [0.0, 1.0]), (two, [0]), (two, [-1, 1]), (two, [0, 0])),
    ):
        with pytest.raises(InvalidInput):
            labelled(embeddings, labels)


def test_loop_visits_every_row_and_reports() -> None:
    weight = nn.Parameter(torch.zeros(1))
    seen: list[int] = []
    told: list[tuple[int, int, float]] = []

    def loss(rows: torch.Tensor, done: float) -> torch.Tensor:
        assert 0 <= done < 1
        seen.extend(rows.tolist())
        return (weight - 3).square().sum()

    mean = minimise(
        loss,
        [weight],
        TrainingConfig(epochs=20, batch_size=4, learning_rate=0.3),
        rows=10,
        decay=True,
        stage="test",
        report=lambda stage, done, total, loss: told.append((done, total, loss)),
    )
    assert sorted(seen) == sorted(list(range(10)) * 20)
    assert told[-1] == (20, 20, mean)
    assert weight.item() == pytest.approx(3, abs=0.1)
