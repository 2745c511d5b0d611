"""Chances of the right label under the mechanisms that release labels, as differentiable functions
of logits.

Logits here are in *budget units*: F divided by (P R / epsilon), so that between neighbours no
difference of two of them changes by more than epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch.nn import functional

from reticent.core.errors import UnknownName

Chance = Callable[[torch.Tensor, torch.Tensor, float], torch.Tensor]

_LEVELS = 64
_NODES, _WEIGHTS = (
    torch.from_numpy(part.astype(np.float32)) for part in np.polynomial.legendre.leggauss(16)
)


def noisy_max_chance(logits: torch.Tensor, labels: torch.Tensor, epsilon: float) -> torch.Tensor:
    """Return the probability that the noisy maximum answers ``labels``, with exponential noise in
    place of geometric noise, shape (n,).

    Adding exponential noise of rate 1 to each logit is the smooth twin of the geometric noise that
    is released ("permute and flip"). Let ``w = exp(logit - largest logit)``. The chance of label r
    is ``w_r`` times the integral over u in [0, 1] of the product over s != r of (1 - w_s u). The
    integrand is a polynomial, integrated exactly by a Gauss rule up to 32 classes and closely
    beyond.

    Reference:
        McKenna and Sheldon, "Permute-and-flip", NeurIPS 2020; Ding et al., "The permute-and-flip
        mechanism is identical to report-noisy-max with exponential noise", 2021.
    """
    weights = torch.exp(logits - logits.max(dim=1, keepdim=True).values)
    nodes, node_weights = 0.5 * (_NODES + 1), 0.5 * _WEIGHTS
    factors = 1 - weights[:, None, :] * nodes[None, :, None]
    own = functional.one_hot(labels, logits.shape[1]).bool()[:, None, :]
    others = factors.masked_fill(own, 1.0).prod(dim=2)
    return weights.gather(1, labels[:, None])[:, 0] * (others @ node_weights)


def stability_chance(logits: torch.Tensor, labels: torch.Tensor, epsilon: float) -> torch.Tensor:
    """Return the probability that stability release answers ``labels``, averaged over a shift of
    the margin by half a level, shape (n,).

    The chance itself is a staircase in the margin, whose derivative is zero almost everywhere. The
    average is its piecewise linear interpolation between the middles of the steps.
    """
    classes = logits.shape[1]
    own = logits.gather(1, labels[:, None])[:, 0]
    rival = (
        logits.masked_fill(functional.one_hot(labels, classes).bool(), -torch.inf).max(dim=1).values
    )
    wrong = [1.0 / (math.exp(epsilon) + classes - 1)]
    for _ in range(_LEVELS - 1):
        right = 1.0 - (classes - 1) * wrong[-1]
        wrong.append(
            max(math.exp(-epsilon) * wrong[-1], (1.0 - math.exp(epsilon) * right) / (classes - 1))
        )
    table = torch.tensor([*reversed(wrong), *(1.0 - (classes - 1) * q for q in wrong)])
    position = ((own - rival) / epsilon + _LEVELS - 0.5).clamp(0, 2 * _LEVELS - 1.001)
    step = position.floor()
    share = position - step
    return table[step.long()] * (1 - share) + table[step.long() + 1] * share


CHANCES: dict[str, Chance] = {
    "stability": stability_chance,
    "noisy-max": noisy_max_chance,
}
"""The chance of the right label under each mechanism that releases labels."""


def chance_of(mechanism: str) -> Chance:
    """Return the differentiable chance of the right label under ``mechanism``.

    Raises:
        UnknownName: no label mechanism has that name.
    """
    if mechanism not in CHANCES:
        raise UnknownName(f"mechanism={mechanism!r}: expected one of {', '.join(CHANCES)}")
    return CHANCES[mechanism]
