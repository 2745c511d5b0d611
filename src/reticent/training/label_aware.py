"""Our classifier for labels, trained for exactly the mechanism that will release its label."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from reticent.core.checks import positive, probability
from reticent.core.norms import Norm
from reticent.training.label_chances import chance_of
from reticent.training.lipschitz_objective import (
    SPREAD,
    input_directions,
    lipschitz_bound,
    output_functionals,
)
from reticent.training.networks import TrainingConfig, labelled, minimise, relu_network, rescale
from reticent.training.progress import Report, silent

PLAIN = ("table", "hop", "response")
"""Mechanisms whose privacy takes nothing from the classifier: its slope is free."""


@dataclass(frozen=True, kw_only=True)
class LabelAwareConfig(TrainingConfig):
    """Everything that decides a classifier for label release, apart from the embeddings.

    Attributes:
        epsilon: budget of one label.
        radius: neighbourhood radius R in ``input_norm``.
        mechanism: ``stability`` or ``noisy-max``, or one of ``PLAIN``, for which the
            best classifier is the one that is right most often.
        input_norm: norm in which neighbours are near, linf or l1.
        hidden: widths of the hidden layers.
        warm_up: share of training, in [0, 1), that raises the mean *log* chance of the right label,
            which has a gradient everywhere. The rest raises the mean chance, which is the accuracy
            that will be seen.
    """

    epsilon: float
    radius: float
    mechanism: str
    input_norm: Norm = Norm.LINF
    hidden: tuple[int, ...] = (128,)
    epochs: int = 40
    batch_size: int = 1000
    learning_rate: float = 1e-2
    warm_up: float = 0.4

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("epsilon", "radius"):
            positive(getattr(self, name), name=name)
        if self.mechanism not in PLAIN:
            chance_of(self.mechanism)
        probability(self.warm_up, name="warm_up")
        object.__setattr__(self, "input_norm", Norm.parse(self.input_norm))


def train_label_release(
    embeddings: npt.ArrayLike,
    labels: npt.ArrayLike,
    config: LabelAwareConfig,
    *,
    report: Report = silent,
) -> nn.Sequential:
    """Train a classifier whose *released* label is right as often as possible.

    The loss divides the logits by ``U * radius / epsilon`` with U the differentiable bound on the
    spread (the largest difference of two logits), so that the mechanism in the loss is that of the
    release.

    Args:
        embeddings: shape (n, d), clipped to the public domain if there is one.
        labels: shape (n,), integers 0..classes - 1.
        config: mechanism, radius, budget, sizes and settings.
        report: a callback that is told after every epoch.

    Returns:
        Linear and ReLU layers from d inputs to one logit per class, in evaluation mode. They are
        scaled so that the training bound on their spread is 1 (not for mechanisms of ``PLAIN``).
        Certify it before use, because the training bound is float32.

    Raises:
        InvalidInput: embeddings and labels do not fit.
        UnsupportedNorm: the input norm has infinitely many extreme points, or inputs are too many
            to enumerate.
    """
    points, targets, classes = labelled(embeddings, labels)
    torch.manual_seed(config.seed)
    network = relu_network([points.shape[1], *config.hidden, classes])
    if config.mechanism in PLAIN:
        return _plain(network, points, targets, config, report)
    directions = input_directions(points.shape[1], config.input_norm)
    functionals = output_functionals(classes, SPREAD)
    chance = chance_of(config.mechanism)

    def loss(rows: torch.Tensor, done: float) -> torch.Tensor:
        unit = lipschitz_bound(network, directions, functionals) * (config.radius / config.epsilon)
        right = chance(network(points[rows]) / unit, targets[rows], config.epsilon)
        return -(right + 1e-4).log().mean() if done < config.warm_up else -right.mean()

    _minimise(loss, network, len(points), config, report)
    with torch.no_grad():
        rescale(network, 1.0 / lipschitz_bound(network, directions, functionals))
    return network.eval()


def _plain(
    network: nn.Sequential,
    points: torch.Tensor,
    targets: torch.Tensor,
    config: LabelAwareConfig,
    report: Report,
) -> nn.Sequential:
    """Train ``network`` by cross entropy on standardised embeddings, and put the standardisation
    into the first layer.

    An embedding that hardly varies may say much about the label.
    """
    center = points.mean(dim=0)
    spread = points.std(dim=0, correction=0).clamp(min=1e-6)
    standard = (points - center) / spread
    _minimise(
        lambda rows, _: functional.cross_entropy(network(standard[rows]), targets[rows]),
        network,
        len(points),
        config,
        report,
    )
    first = network[0]
    assert isinstance(first, nn.Linear)
    with torch.no_grad():
        first.weight.div_(spread)
        first.bias.sub_(first.weight @ center)
    return network.eval()


def _minimise(
    loss: Callable[[torch.Tensor, float], torch.Tensor],
    network: nn.Sequential,
    rows: int,
    config: LabelAwareConfig,
    report: Report,
) -> None:
    minimise(
        loss,
        network.parameters(),
        config,
        rows=rows,
        decay=True,
        stage=f"label release, epsilon {config.epsilon:g}",
        report=report,
    )
