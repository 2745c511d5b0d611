"""Our classifier for labels, trained for exactly the mechanism that will release its label."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from reticent.training.label_chances import chance_of
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
