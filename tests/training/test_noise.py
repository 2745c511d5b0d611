"""Training noise has the radius and the shape of the release laws."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from reticent.core import Norm
from reticent.training.noise import training_noise


@pytest.mark.parametrize(("norm", "shape"), [(Norm.L1, 3), (Norm.LINF, 3), (Norm.L2, 3)])
def test_radius_is_gamma_and_scale_errors_are_caught(norm: Norm, shape: int) -> None:
    # Density exp(-||u||) in m dimensions has ||u|| ~ Gamma(m). False alarm 1e-4 per norm; seeded.
    torch.manual_seed(0)
    radius = norm.of(training_noise(20_000, shape, output_norm=norm).numpy())
    assert stats.kstest(radius, stats.gamma(shape).cdf).pvalue > 1e-4
    for wrong in (2 / 3, 3 / 2):
        assert stats.kstest(radius * wrong, stats.gamma(shape).cdf).pvalue < 1e-10


@pytest.mark.parametrize("norm", list(Norm))
def test_symmetric_in_every_coordinate(norm: Norm) -> None:
    torch.manual_seed(1)
    noise = training_noise(20_000, 4, output_norm=norm).numpy()
    assert np.abs((noise > 0).mean(axis=0) - 0.5).max() < 0.02
    assert np.abs(np.corrcoef(noise.T) - np.eye(4)).max() < 0.04
