"""Plain training against torch's, record by record; and neighbours that break no certificate."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from papers.certified import retrainings as search_module
from papers.certified.plain_training import plain_training
from papers.certified.retrainings import KINDS, search
from reticent.retraining import TrainingSettings
from reticent.retraining.reserves import ReserveSettings

SETTINGS = [
    {"classes": 2},
    {"classes": 3, "momentum": 0.5, "weight_decay": 0.1},
    {"classes": 2, "hidden": (5,), "batches": 2},
    {"classes": 4, "hidden": (6, 5), "clip": 0.5},
    {"classes": 3, "hidden": (5,), "clip": 0.3, "class_weights": (1.0, 0.2, 0.05)},
]


@pytest.mark.parametrize("fields", SETTINGS)
def test_the_same_weights_as_torch(fields: dict[str, object]) -> None:
    settings = TrainingSettings(features=3, epochs=3, **fields)
    random = np.random.default_rng(0)
    X = np.round(random.normal(size=(20, 3)) * 1024) / 1024
    labels = random.integers(0, settings.classes, 20)
    batch = random.integers(0, settings.batches, 20)
    initial = [np.round(weights * 2**20) / 2**20 for weights in settings.initial(1)]
    layers: list[nn.Module] = []
    for inputs, units in zip(settings.widths[:-1], settings.widths[1:], strict=True):
        layers += [nn.Linear(inputs, units, dtype=torch.float64), nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    linear = [layer for layer in model if isinstance(layer, nn.Linear)]
    with torch.no_grad():
        for layer, weights in zip(linear, initial, strict=True):
            layer.weight.copy_(torch.from_numpy(weights[:, :-1]))
            layer.bias.copy_(torch.from_numpy(weights[:, -1]))
    parameters = list(model.parameters())
    velocity = [torch.zeros_like(parameter) for parameter in parameters]
    for step in range(settings.steps):
        rows = np.flatnonzero(batch == step % settings.batches)
        sums = [torch.zeros_like(parameter) for parameter in parameters]
        for row in rows:
            logits = model(torch.from_numpy(X[row : row + 1]))
            truth = torch.tensor([labels[row]])
            if settings.outputs == 1:
                loss = nn.functional.binary_cross_entropy_with_logits(logits[:, 0], truth.double())
            else:
                loss = nn.functional.cross_entropy(logits, truth)
            for total, gradient in zip(sums, torch.autograd.grad(loss, parameters), strict=True):
                share = (settings.class_weights or (1.0,) * settings.classes)[labels[row]]
                total += share * gradient.clamp(-settings.clip, settings.clip)
        rate = settings.rate(step)
        with torch.no_grad():
            for parameter, speed, total in zip(parameters, velocity, sums, strict=True):
                speed.mul_(settings.momentum).add_(total / len(rows))
                parameter.mul_(1 - rate * settings.weight_decay).sub_(rate * speed)
    expected = [
        torch.cat([layer.weight, layer.bias[:, None]], dim=1).detach().numpy() for layer in linear
    ]
    for weights, reference in zip(
        plain_training(X, labels, settings, initial=initial, batch=batch), expected, strict=True
    ):
        np.testing.assert_allclose(weights, reference, atol=2e-7)


@pytest.mark.parametrize("retrainings", [300, pytest.param(100_000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("kind", KINDS)
def test_neighbours_break_a_certificate_only_where_it_grants_too_much(
    kind: str, retrainings: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = search(kind, retrainings=retrainings, seconds=0.2 * retrainings)
    assert sound["retrainings"] >= retrainings
    assert sound["flips"] > 50
    assert sound["broken"] == 0
    assert 0.9 < sound["largest"] <= 1.0
    monkeypatch.setattr(ReserveSettings, "worth", 0.5)
    monkeypatch.setattr(search_module, "VOTE", 0.5 * search_module.VOTE)
    assert search(kind, retrainings=300, seconds=60.0)["broken"] > 10
