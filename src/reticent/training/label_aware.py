"""Our classifier for labels, trained for exactly the mechanism that will release its label.

Chances of the right label under each mechanism are differentiable functions of logits in *budget
units*: F divided by (P R / epsilon), so that between neighbours no difference of two of them
changes by more than epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from reticent.core.errors import UnknownName
from reticent.training.lipschitz_objective import (
    SPREAD,
    input_directions,
    lipschitz_bound,
    output_functionals,
)
from reticent.training.networks import TrainingConfig, labelled, minimise, relu_network, rescale
from reticent.training.progress import Report, silent

if TYPE_CHECKING:
    from reticent.training.parts.contract import PlannedRelease

PLAIN = ("table", "hop", "response")
"""Mechanisms whose privacy takes nothing from the classifier: its slope is free."""

_WARM_UP = 0.4
"""Share of training that raises the mean *log* chance of the right label, which has a gradient
everywhere. The rest raises the mean chance, which is the accuracy that will be seen.
"""

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


def train_label_release(
    embeddings: npt.ArrayLike,
    labels: npt.ArrayLike,
    release: PlannedRelease,
    config: TrainingConfig,
    *,
    hidden: tuple[int, ...],
    report: Report = silent,
) -> nn.Sequential:
    """Train a classifier whose *released* label is right as often as possible.

    The loss divides the logits by ``U * radius / epsilon`` with U the differentiable bound on the
    spread (the largest difference of two logits), so that the mechanism in the loss is that of the
    release.

    Args:
        embeddings: shape (n, d), clipped to the public domain if there is one.
        labels: shape (n,), integers 0..classes - 1.
        release: budget, radius, norm of neighbours (linf or l1), and the mechanism: "stability"
            or "noisy-max", or one of ``PLAIN``, for which the best classifier is the
            one that is right most often.
        config: passes, batches, learning rate and seed.
        hidden: widths of the hidden layers.
        report: a callback that is told after every epoch.

    Returns:
        Linear and ReLU layers from d inputs to one logit per class, in evaluation mode. They are
        scaled so that the training bound on their spread is 1 (not for mechanisms of ``PLAIN``).
        Certify it before use, because the training bound is float32.

    Raises:
        InvalidInput: embeddings and labels do not fit.
        UnknownName: the mechanism releases no labels.
        UnsupportedNorm: the input norm has infinitely many extreme points, or inputs are too many
            to enumerate.
    """
    points, targets, classes = labelled(embeddings, labels)
    torch.manual_seed(config.seed)
    network = relu_network([points.shape[1], *hidden, classes])

    def minimised(loss: Callable[[torch.Tensor, float], torch.Tensor]) -> None:
        minimise(
            loss,
            network.parameters(),
            config,
            rows=len(points),
            decay=True,
            stage=f"label release, epsilon {release.epsilon:g}",
            report=report,
        )

    if release.mechanism in PLAIN:
        # An embedding that hardly varies may say much about the label.
        center = points.mean(dim=0)
        spread = points.std(dim=0, correction=0).clamp(min=1e-6)
        standard = (points - center) / spread
        minimised(lambda rows, _: functional.cross_entropy(network(standard[rows]), targets[rows]))
        first = network[0]
        assert isinstance(first, nn.Linear)
        with torch.no_grad():  # the standardisation goes into the first layer
            first.weight.div_(spread)
            first.bias.sub_(first.weight @ center)
        return network.eval()
    directions = input_directions(points.shape[1], release.input_norm)
    functionals = output_functionals(classes, SPREAD)
    chance = chance_of(release.mechanism)

    def loss(rows: torch.Tensor, done: float) -> torch.Tensor:
        unit = lipschitz_bound(network, directions, functionals)
        unit = unit * (release.radius / release.epsilon)
        right = chance(network(points[rows]) / unit, targets[rows], release.epsilon)
        return -(right + 1e-4).log().mean() if done < _WARM_UP else -right.mean()

    minimised(loss)
    with torch.no_grad():
        rescale(network, 1.0 / lipschitz_bound(network, directions, functionals))
    return network.eval()
