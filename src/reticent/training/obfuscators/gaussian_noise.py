"""N: show classifier and adversary the representation with a little Gaussian noise."""

from __future__ import annotations

import torch

from reticent.training.obfuscators.regulariser import Regulariser


class GaussianNoise(Regulariser):
    """Gaussian noise on the obfuscated representation during training.

    It regularises; it is too small, and of the wrong distribution, to prove anything.

    Args:
        sigma: standard deviation (published: 0.01).
    """

    name = "noise"

    def __init__(self, sigma: float = 0.01) -> None:
        self.sigma = sigma

    def perturb(self, representation: torch.Tensor) -> torch.Tensor:
        """The representation plus fresh noise."""
        return representation + self.sigma * torch.randn_like(representation)
