"""Plain float noise with the shape of the release mechanisms, and its rise during training. Never
for a release.
"""

from __future__ import annotations

import torch
from torch.nn import functional

from reticent.core.norms import Norm

_DRAWS = 10_000
_RAMP = 0.75


def training_noise(rows: int, outputs: int, *, output_norm: Norm) -> torch.Tensor:
    """Draw noise of unit scale whose density is proportional to exp(-||u||) in ``output_norm``.

    These are textbook samplers on floats, drawn from torch's global generator. They are good enough
    to train through, and unsafe to release with (``reticent.noise`` has the samplers for that).

    Args:
        rows: number of draws.
        outputs: the dimension m of each draw.
        output_norm: l1 (independent Laplace), linf (radius Gamma(m + 1) times a uniform point of
            the cube) or l2 (radius Gamma(m) times a uniform direction).

    Returns:
        Shape (rows, outputs), float32, to be multiplied by ``proposal * radius / epsilon``.

    Example:
        >>> training_noise(5, 3, output_norm=Norm.LINF).shape
        torch.Size([5, 3])
    """
    if output_norm is Norm.L1:
        magnitudes = torch.empty(rows, outputs).exponential_()
        return magnitudes * (2.0 * torch.randint(0, 2, (rows, outputs)) - 1.0)
    if output_norm is Norm.LINF:
        return _gamma(rows, outputs + 1) * (2.0 * torch.rand(rows, outputs) - 1.0)
    directions = torch.randn(rows, outputs)
    return _gamma(rows, outputs) * functional.normalize(directions, dim=1)


def noise_spread(outputs: int, *, output_norm: Norm) -> float:
    """Return the standard deviation of one value of ``training_noise``, measured on 10,000 draws of
    it.
    """
    return training_noise(_DRAWS, outputs, output_norm=output_norm).std().item()


def noise_share(done: float, *, first: float) -> float:
    """Return the share of the full noise when the share ``done`` of training is over.

    It is a geometric ramp over the first three quarters. Training with a small budget that starts
    at full noise stays in a poor optimum.

    Args:
        done: share of training that is over, in [0, 1].
        first: share of the noise at the start, in (0, 1].

    Example:
        >>> [round(noise_share(done, first=0.25), 3) for done in (0.0, 0.375, 0.75, 1.0)]
        [0.25, 0.5, 1.0, 1.0]
    """
    return min(1.0, float(first ** (1.0 - done / _RAMP)))


def _gamma(rows: int, shape: int) -> torch.Tensor:
    """Draw sums of ``shape`` exponentials, shape (rows, 1)."""
    return torch.empty(rows, shape).exponential_().sum(dim=1, keepdim=True)
