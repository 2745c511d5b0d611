"""Heads learn from released values; training noise has the radius and the shape of the release."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from reticent.core import Norm
from reticent.training.heads import HeadConfig, linear_head, train_head
from reticent.training.networks import Adam
from reticent.training.noise import noise_spread, training_noise

CONFIG = HeadConfig(hidden=(16,), epochs=8, batch_size=100)


def blobs(rows: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    labels = random.integers(0, 3, rows)
    return random.normal(size=(rows, 2)) + 4.0 * np.eye(3)[labels][:, :2] * 1.0 + 100.0, labels


def test_withheld_rows_are_left_out_and_predicted_as_minus_one() -> None:
    values, labels = blobs()
    values[::4] = np.nan
    head = train_head(values, labels, CONFIG, noise=None)
    predicted = head.predict(values)
    assert (predicted[::4] == -1).all()
    assert (predicted[1::4] == labels[1::4]).mean() > 0.9


def test_steps_are_those_of_torch() -> None:
    torch.manual_seed(0)
    points, targets = torch.randn(30, 4), torch.randn(30, 2)
    ours, theirs = nn.Linear(4, 2), nn.Linear(4, 2)
    theirs.load_state_dict(ours.state_dict())
    step, peer = Adam(ours.parameters()), torch.optim.Adam(theirs.parameters(), lr=0.1)
    for _ in range(50):
        for model in (ours, theirs):
            torch.autograd.backward((model(points) - targets).square().mean())
        step.step(0.1)
        peer.step()
        peer.zero_grad(set_to_none=True)
    torch.testing.assert_close(ours.weight, theirs.weight, rtol=1e-4, atol=1e-6)


def test_a_linear_head_knows_of_the_noise() -> None:
    """Without noise the narrow coordinate tells all. With it the wide one does: Phi(2 / 1.41)."""
    random = np.random.default_rng(0)
    labels = np.arange(4000) % 2
    values = np.where(labels[:, None] == 0, -1.0, 1.0) * [2.0, 0.05]
    values = values + random.normal(size=values.shape) * [1.0, 0.002]
    noisy = values + random.normal(size=values.shape)
    right = {
        variance: (linear_head(values, labels, variance=variance).predict(noisy) == labels).mean()
        for variance in (1e-9, 1.0)
    }
    assert right[1.0] == pytest.approx(0.921, abs=0.02)  # four to five standard errors
    assert right[1e-9] < 0.7


@pytest.mark.parametrize("norm", list(Norm))
def test_radius_is_gamma_and_scale_errors_are_caught(norm: Norm) -> None:
    # Density exp(-||u||) in m dimensions has ||u|| ~ Gamma(m). False alarm 1e-4 per norm; seeded.
    torch.manual_seed(0)
    radius = norm.of(training_noise(20_000, 3, output_norm=norm).numpy())
    assert stats.kstest(radius, stats.gamma(3).cdf).pvalue > 1e-4
    for wrong in (2 / 3, 3 / 2):
        assert stats.kstest(radius * wrong, stats.gamma(3).cdf).pvalue < 1e-10


@pytest.mark.parametrize(
    ("norm", "variance"),
    # Laplace: 2. Cube: E[Gamma(m + 1)^2] / 3 = (m + 1)(m + 2) / 3. Sphere: E[Gamma(m)^2] / m = m +
    # 1.
    [(Norm.L1, 2.0), (Norm.LINF, 20 / 3), (Norm.L2, 4.0)],
)
def test_the_spread_is_that_of_the_distribution(norm: Norm, variance: float) -> None:
    torch.manual_seed(2)
    assert noise_spread(3, output_norm=norm) == pytest.approx(np.sqrt(variance), rel=0.03)
