"""A differentiable two-sided bound on the Lipschitz constant of a ReLU network, for use inside a
loss.

The bound is the sign enumeration that certifies the finished network, over the whole input space
(every neuron may be on or off). Training thus pays for what release will be charged. The bound is
*not* the certificate: float32, no outward margin. The certificate is ``reticent.lipschitz``'s, on
the finished weights.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from reticent.core.errors import UnsupportedNetwork, UnsupportedNorm
from reticent.core.norms import Norm, sign_patterns

SPREAD = "spread"
"""The seminorm max_ij |v_i - v_j|: what adding a constant to all logits does not change."""


def input_directions(dimension: int, input_norm: Norm) -> torch.Tensor:
    """Return the extreme points of the unit ball of ``input_norm``, one of each pair {t, -t}, shape
    (directions, dimension).

    Raises:
        UnsupportedNorm: the ball has no finite set of extreme points (l2).

    Example:
        >>> input_directions(2, Norm.LINF).tolist()
        [[1.0, 1.0], [1.0, -1.0]]
    """
    if input_norm is Norm.LINF:
        return torch.from_numpy(sign_patterns(dimension, up_to_sign=True).astype(np.float32))
    if input_norm is Norm.L1:
        return torch.eye(dimension)
    raise UnsupportedNorm(
        f"input_norm={input_norm.value}: expected l1 or linf (finitely many extreme points)"
    )


def output_functionals(dimension: int, output: Norm | str) -> torch.Tensor:
    """Return functionals whose largest absolute value is the output (semi)norm, one of each pair
    {a, -a}.

    Args:
        dimension: number of outputs, m.
        output: l1, linf, or ``"spread"``.

    Returns:
        Shape (functionals, m): sign patterns for l1, unit vectors for linf, differences e_i - e_j
        for the spread.

    Raises:
        UnsupportedNorm: the norm is l2, whose unit ball has no finite set of such functionals.

    Example:
        >>> output_functionals(3, "spread").tolist()
        [[1.0, -1.0, 0.0], [1.0, 0.0, -1.0], [0.0, 1.0, -1.0]]
    """
    if output == SPREAD:
        first, second = np.triu_indices(dimension, k=1)
        rows = np.zeros((len(first), dimension), dtype=np.float32)
        rows[np.arange(len(first)), first] = 1
        rows[np.arange(len(first)), second] = -1
        return torch.from_numpy(rows)
    if output == Norm.L1:
        return torch.from_numpy(sign_patterns(dimension, up_to_sign=True).astype(np.float32))
    if output == Norm.LINF:
        return torch.eye(dimension)
    raise UnsupportedNorm(f"output={output}: expected l1, linf or {SPREAD}")


def lipschitz_bound(
    network: nn.Sequential, directions: torch.Tensor, functionals: torch.Tensor | None
) -> torch.Tensor:
    """Return an upper bound on the Lipschitz constant of ``network`` over the whole space.

    For each direction t the interval of every neuron's directional derivative is carried forward. A
    ReLU turns ``[lo, hi]`` into ``[min(0, lo), max(0, hi)]``. At the end the intervals are combined
    with each functional a, where ``max(0, c d) = c+ d+ + c- d-`` makes the sum over neurons two
    matrix products. With one hidden layer this is ``max_{a, t} sum_j max(0, (a W2)_j (W1 t)_j)``.

    Args:
        network: Linear and ReLU layers, starting and ending with a Linear one.
        directions: shape (directions, inputs), from ``input_directions``.
        functionals: shape (functionals, outputs), from ``output_functionals``. None for the l2
            output norm, which is bounded per direction by the l2 norm of the largest absolute
            derivative of each output.

    Returns:
        The bound, a scalar tensor through which gradients flow to the weights.

    Raises:
        UnsupportedNetwork: the layers are of another kind or order.

    Example:
        >>> layer = nn.Linear(2, 1)
        >>> _ = layer.weight.data.copy_(torch.tensor([[3.0, -4.0]]))
        >>> t = input_directions(2, Norm.LINF)
        >>> lipschitz_bound(nn.Sequential(layer), t, output_functionals(1, Norm.L1)).item()
        7.0
    """
    layers = _affine_layers(network)
    lower = upper = directions
    for layer in layers[:-1]:
        lower, upper = _through(layer.weight, lower, upper)
        lower, upper = lower.clamp(max=0), upper.clamp(min=0)
    weight = layers[-1].weight
    if functionals is None:
        low, high = _through(weight, lower, upper)
        return torch.maximum(-low, high).square().sum(dim=1).max().sqrt()
    low, high = _through(functionals @ weight, lower, upper)
    return torch.maximum(high.max(), -low.min())


def _through(
    weight: torch.Tensor, lower: torch.Tensor, upper: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the interval of ``weight @ v`` for v in [lower, upper], rows of shape (directions,
    inputs).
    """
    if lower is upper:
        image = lower @ weight.T
        return image, image
    positive, negative = weight.clamp(min=0).T, weight.clamp(max=0).T
    return lower @ positive + upper @ negative, upper @ positive + lower @ negative


def _affine_layers(network: nn.Sequential) -> list[nn.Linear]:
    layers = list(network)
    affine = [layer for layer in layers[::2] if isinstance(layer, nn.Linear)]
    if (
        len(layers) % 2 == 0
        or len(affine) != len(layers[::2])
        or not all(isinstance(layer, nn.ReLU) for layer in layers[1::2])
    ):
        kinds = ", ".join(type(layer).__name__ for layer in layers) or "no layers"
        raise UnsupportedNetwork(
            f"network: expected Linear and ReLU in turn, Linear first and last, got {kinds}"
        )
    return affine
