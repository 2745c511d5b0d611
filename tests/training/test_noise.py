"""Training noise has the radius and the shape of the release distributions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from reticent.core import Norm
from reticent.training.noise import noise_share, noise_spread, training_noise


@pytest.mark.parametrize("norm", list(Norm))
def test_radius_is_gamma_and_scale_errors_are_caught(norm: Norm) -> None:
    # Density exp(-||u||) in m dimensions has ||u|| ~ Gamma(m). False alarm 1e-4 per norm; seeded.
    torch.manual_seed(0)
    radius = norm.of(training_noise(20_000, 3, output_norm=norm).numpy())
    assert stats.kstest(radius, stats.gamma(3).cdf).pvalue > 1e-4
    for wrong in (2 / 3, 3 / 2):
        assert stats.kstest(radius * wrong, stats.gamma(3).cdf).pvalue < 1e-10


@pytest.mark.parametrize("norm", list(Norm))
def test_symmetric_in_every_coordinate(norm: Norm) -> None:
    torch.manual_seed(1)
    noise = training_noise(20_000, 4, output_norm=norm).numpy()
    assert np.abs((noise > 0).mean(axis=0) - 0.5).max() < 0.02
    assert np.abs(np.corrcoef(noise.T) - np.eye(4)).max() < 0.04


@pytest.mark.parametrize(
    ("norm", "variance"),
    # Laplace: 2. Cube: E[Gamma(m + 1)^2] / 3 = (m + 1)(m + 2) / 3. Sphere: E[Gamma(m)^2] / m = m +
    # 1.
    [(Norm.L1, 2.0), (Norm.LINF, 20 / 3), (Norm.L2, 4.0)],
)
def test_the_spread_is_that_of_the_distribution(norm: Norm, variance: float) -> None:
    torch.manual_seed(2)
    assert noise_spread(3, output_norm=norm) == pytest.approx(np.sqrt(variance), rel=0.03)


def test_the_share_rises_geometrically_and_stays_at_one() -> None:
    shares = np.array([noise_share(done, first=0.04) for done in np.linspace(0, 0.75, 4)])
    np.testing.assert_allclose(shares, [0.04, 0.04 ** (2 / 3), 0.04 ** (1 / 3), 1.0])
    assert noise_share(0.9, first=0.04) == 1.0
    assert noise_share(0.0, first=1.0) == 1.0
