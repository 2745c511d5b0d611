"""Training noise has the radius and the shape of the release distributions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from reticent.core import Norm
from reticent.training.noise import noise_spread, training_noise


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
