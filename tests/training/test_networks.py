"""The shared pieces of training: networks, checked labels, the loop."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from reticent.training.networks import Adam, TrainingConfig, minimise


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


def test_adam_is_that_of_torch() -> None:
    torch.manual_seed(0)
    points, targets = torch.randn(30, 4), torch.randn(30, 2)
    ours, theirs = nn.Linear(4, 2), nn.Linear(4, 2)
    theirs.load_state_dict(ours.state_dict())
    step, peer = Adam(ours.parameters()), torch.optim.Adam(theirs.parameters())
    for at in range(50):
        rate = 0.1 / (1 + at)
        for group in peer.param_groups:
            group["lr"] = rate
        for model in (ours, theirs):
            torch.autograd.backward((model(points) - targets).square().mean())
        step.step(rate)
        peer.step()
        peer.zero_grad(set_to_none=True)
    torch.testing.assert_close(ours.weight, theirs.weight, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(ours.bias, theirs.bias, rtol=1e-4, atol=1e-6)
