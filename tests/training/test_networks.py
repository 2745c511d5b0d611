"""The shared pieces of training: networks, checked labels, the loop."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from reticent.training.networks import TrainingConfig, minimise


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
