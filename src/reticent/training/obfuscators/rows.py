"""Obfuscators as published: a classifier's loss and any combination of regularisers, chosen by
name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from reticent.core.checks import count, positive, probability
from reticent.core.errors import UnknownName
from reticent.training.networks import labelled, minimise, relu_network
from reticent.training.obfuscators.adversarial import PUBLISHED_ALPHA, Adversarial
from reticent.training.obfuscators.contrastive import Contrastive
from reticent.training.obfuscators.gaussian_noise import GaussianNoise
from reticent.training.obfuscators.regulariser import Regulariser
from reticent.training.progress import Report, silent

REGULARISERS: dict[str, Callable[[], Regulariser]] = {
    Adversarial.name: Adversarial,
    Contrastive.name: Contrastive,
    GaussianNoise.name: GaussianNoise,
}
"""Regularisers by name, each with its published settings. The empty list is the plain encoder."""

PUBLISHED_ROWS: dict[str, tuple[str, ...]] = {
    "Encoder": (),
    "ARL": ("arl",),
    "C": ("contrastive",),
    "N": ("noise",),
    "ARL-C": ("arl", "contrastive"),
    "ARL-N": ("arl", "noise"),
    "C-N": ("contrastive", "noise"),
    "ARL-C-N": ("arl", "contrastive", "noise"),
}
"""The eight rows of the published table."""


@dataclass(frozen=True, kw_only=True)
class ObfuscatorConfig:
    """Everything that decides a published obfuscator, apart from the embeddings.

    Attributes:
        regularisers: names from ``REGULARISERS``; empty for the plain encoder.
        hidden: widths of the hidden layers.
        outputs: dimension of the obfuscated representation.
        epochs: passes over the embeddings.
        batch_size: embeddings per step.
        learning_rate: of Adam (published: 1e-3).
        alpha: weight of the adversary's term in (0, 1), where "arl" is named.
        seed: seed of weights, order and noise.
    """

    regularisers: tuple[str, ...] = ()
    hidden: tuple[int, ...] = (32,)
    outputs: int = 8
    epochs: int = 10
    batch_size: int = 128
    learning_rate: float = 1e-3
    alpha: float = PUBLISHED_ALPHA
    seed: int = 0

    def __post_init__(self) -> None:
        for name in self.regularisers:
            if name not in REGULARISERS:
                raise UnknownName(
                    f"regulariser={name!r}: expected names from {', '.join(REGULARISERS)}"
                )
        for name in ("outputs", "epochs", "batch_size"):
            count(getattr(self, name), name=name)
        positive(self.learning_rate, name="learning_rate")
        probability(self.alpha, name="alpha", allow_zero=False)


def train_obfuscator(
    embeddings: npt.ArrayLike,
    labels: npt.ArrayLike,
    config: ObfuscatorConfig,
    *,
    report: Report = silent,
) -> nn.Sequential:
    """A ReLU network on embeddings, trained with a classifier and the named regularisers.

    Args:
        embeddings: shape (n, d).
        labels: shape (n,), integers 0..classes - 1.
        config: a row of the table, sizes and settings.
        report: told after every epoch.

    Returns:
        Linear and ReLU layers in turn, from d inputs to ``config.outputs`` outputs, in evaluation
        mode. The
        classifier that it was trained with is dropped: the server's head is trained on what is
            released.

    Raises:
        InvalidInput: embeddings and labels that do not fit.

    Example:
        >>> import numpy as np
        >>> points = np.random.default_rng(0).normal(size=(64, 2))
        >>> row = ObfuscatorConfig(regularisers=("noise",), hidden=(4,), outputs=3, epochs=1)
        >>> train_obfuscator(points, (points[:, 0] > 0).astype(int), row)[-1].out_features
        3
    """
    points, targets, classes = labelled(embeddings, labels)
    torch.manual_seed(config.seed)
    network = relu_network([points.shape[1], *config.hidden, config.outputs])
    classifier = relu_network([config.outputs, 64, classes])
    regularisers = _prepared(config, points)

    def loss(rows: torch.Tensor, _: float) -> torch.Tensor:
        representation: torch.Tensor = network(points[rows])
        for regulariser in regularisers:
            representation = regulariser.perturb(representation)
        value = functional.cross_entropy(classifier(representation), targets[rows])
        for regulariser in regularisers:
            value = value * regulariser.task_weight()
        for regulariser in regularisers:
            value = value + regulariser.penalty(representation, points[rows], targets[rows])
        return value

    minimise(
        loss,
        [*network.parameters(), *classifier.parameters()],
        rows=len(points),
        epochs=config.epochs,
        batch_size=config.batch_size,
        learning_rate=config.learning_rate,
        decay=False,
        stage="obfuscator " + ("-".join(config.regularisers) or "encoder"),
        report=report,
    )
    return network.eval()


def _prepared(config: ObfuscatorConfig, points: torch.Tensor) -> list[Regulariser]:
    made = [
        Adversarial(config.alpha) if name == Adversarial.name else REGULARISERS[name]()
        for name in config.regularisers
    ]
    for regulariser in made:
        regulariser.prepare(points, config.outputs)
    return made
