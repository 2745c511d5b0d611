"""Plain float noise with the shape of the release laws, for training through it. Never for a release."""

from __future__ import annotations

import torch
from torch.nn import functional

from reticent.core.norms import Norm


def training_noise(rows: int, outputs: int, *, output_norm: Norm) -> torch.Tensor:
    """Noise of unit scale whose density is proportional to exp(-||u||) in ``output_norm``.

    These are textbook samplers on floats, drawn from torch's global generator: good enough to train through,
    unsafe to release with (``reticent.noise`` has the samplers for that).

    Args:
        rows: number of draws.
        outputs: dimension m of each draw.
        output_norm: l1 (independent Laplace), linf (radius Gamma(m + 1) times a uniform point of the cube) or l2
            (radius Gamma(m) times a uniform direction).

    Returns:
        Shape (rows, outputs), float32; multiply by ``proposal * radius / epsilon``.

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


def _gamma(rows: int, shape: int) -> torch.Tensor:
    """Sums of ``shape`` exponentials, shape (rows, 1)."""
    return torch.empty(rows, shape).exponential_().sum(dim=1, keepdim=True)
