"""The noise regulariser perturbs with the stated standard deviation."""

from __future__ import annotations

import torch

from reticent.training.obfuscators.gaussian_noise import GaussianNoise


def test_standard_deviation() -> None:
    torch.manual_seed(0)
    difference = GaussianNoise(sigma=0.01).perturb(torch.zeros(20_000, 2))
    assert abs(difference.std().item() - 0.01) < 2e-4
