"""Label release: constant 1 in the spread, and losses whose chances are those of the release."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from reticent.core import Neighborhood, Norm
from reticent.mechanisms import StabilityRelease
from reticent.training.label_aware import (
    CHANCES,
    chance_of,
    noisy_max_chance,
    stability_chance,
    train_label_release,
)
from reticent.training.lipschitz_objective import (
    SPREAD,
    input_directions,
    lipschitz_bound,
    output_functionals,
)
from reticent.training.networks import TrainingConfig
from reticent.training.parts import PlannedRelease


def blobs() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    labels = random.integers(0, 4, 1500)
    points = random.normal(size=(1500, 3))
    points[:, :2] = 0.3 * points[:, :2] + np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])[labels]
    return points.astype(np.float32), labels


@pytest.mark.parametrize("mechanism", list(CHANCES))
def test_spread_is_one_and_labels_are_mostly_right(mechanism: str) -> None:
    points, labels = blobs()
    release = PlannedRelease(
        epsilon=2.0,
        delta=0.0,
        radius=0.3,
        input_norm=Norm.LINF,
        mechanism=mechanism,
        output=SPREAD,
    )
    config = TrainingConfig(epochs=15, batch_size=250, learning_rate=1e-2)
    network = train_label_release(points, labels, release, config, hidden=(16,))
    directions, functionals = input_directions(3, Norm.LINF), output_functionals(4, SPREAD)
    assert lipschitz_bound(network, directions, functionals).item() == pytest.approx(1.0, rel=1e-4)
    with torch.no_grad():
        logits = network(torch.from_numpy(points)) * (2.0 / 0.3)
        right = chance_of(mechanism)(logits, torch.from_numpy(labels), 2.0).mean().item()
    assert right > 0.75


NEAR = Neighborhood(Norm.LINF, 0.5, "embedding")
LOGITS = torch.randn(200, 5, generator=torch.Generator().manual_seed(0)) * 3
LABELS = torch.arange(200) % 5


def test_noisy_max_chance_matches_sampling() -> None:
    # 20,000 draws a row: five standard errors are below 0.018.
    random = np.random.default_rng(0)
    logits, labels = LOGITS[:5].double().numpy(), LABELS[:5].numpy()
    wins = (logits[:, None, :] + random.exponential(size=(5, 20_000, 5))).argmax(axis=2)
    shares = (wins == labels[:, None]).mean(axis=1)
    np.testing.assert_allclose(
        noisy_max_chance(LOGITS[:5], LABELS[:5], 1.0).numpy(), shares, atol=0.018
    )


@pytest.mark.parametrize("classes", [2, 10, 30])
def test_noisy_max_chances_of_all_labels_sum_to_one(classes: int) -> None:
    logits = torch.randn(20, classes, generator=torch.Generator().manual_seed(1)) * 2
    total = sum(noisy_max_chance(logits, torch.full((20,), label), 1.0) for label in range(classes))
    torch.testing.assert_close(total, torch.ones(20), atol=1e-4, rtol=0)


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_stability_chance_is_the_release_in_the_middle_of_its_steps(epsilon: float) -> None:
    built = StabilityRelease(classes=4, sensitivity=1.0, epsilon=epsilon, adjacency=NEAR)
    margins = np.arange(6) + 0.5
    units = np.zeros((6, 4))
    units[:, 2] = margins
    logits = torch.from_numpy(units * epsilon).float()
    for label in (2, 0):
        expected = built.probabilities(units)[:, label]
        got = stability_chance(logits, torch.full((6,), label), epsilon).numpy()
        np.testing.assert_allclose(got, expected if label == 2 else got, atol=1e-3)
    assert stability_chance(logits, torch.zeros(6, dtype=torch.long), epsilon).max() < 0.25


@pytest.mark.parametrize("mechanism", list(CHANCES))
def test_gradients_raise_the_right_logit(mechanism: str) -> None:
    logits = torch.tensor([[0.3, 0.0, -0.2]], requires_grad=True)
    torch.autograd.backward(chance_of(mechanism)(logits, torch.tensor([0]), 1.0).sum())
    assert logits.grad is not None
    assert logits.grad[0, 0] > 0
    assert logits.grad[0, 1] < 0
