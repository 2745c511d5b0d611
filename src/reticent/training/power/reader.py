"""A public model of free coordinates and of protected ones that are released with noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from reticent.core.checks import count, positive, probability
from reticent.core.norms import Norm
from reticent.networks import Affine, Network, from_torch
from reticent.training.networks import TrainingConfig, labelled, minimise, relu_network
from reticent.training.noise import training_noise
from reticent.training.progress import Report, silent


@dataclass(frozen=True, kw_only=True)
class ReaderConfig(TrainingConfig):
    """Everything that decides the model, apart from the rows.

    Attributes:
        epsilon: budget that the answer will be given.
        norm: the norm of neighbours, l2 or l-infinity.
        hidden: width of both layers.
        dropout: share of the free coordinates that are left out in a step.
        answer_unit: radii that one unit of what the model reads stands for.
    """

    epsilon: float
    norm: Norm
    hidden: int = 64
    epochs: int = 20
    batch_size: int = 250
    learning_rate: float = 5e-3
    dropout: float = 0.0
    answer_unit: float = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("epsilon", "answer_unit"):
            positive(getattr(self, name), name=name)
        count(self.hidden, name="hidden")
        probability(self.dropout, name="dropout")


def train_reader(
    free: npt.ArrayLike,
    near: npt.ArrayLike,
    labels: npt.ArrayLike,
    config: ReaderConfig,
    *,
    report: Report = silent,
) -> Network:
    """Train the model through the noise of its release. Return log odds of the labels.

    Args:
        free: shape (n, free), whose first column is one.
        near: shape (n, protected), in radii.
        labels: shape (n,), integers from 0, at least two classes.
        config: budget, sizes and settings.
        report: a callback that is told after every epoch.

    Raises:
        InvalidInput: rows and labels do not fit.
    """
    rows, targets, classes = labelled(free, labels)
    points = torch.from_numpy(np.asarray(near, dtype=np.float32))
    torch.manual_seed(config.seed)
    width = points.shape[1]
    model = relu_network([rows.shape[1] + width, config.hidden, config.hidden, classes])

    def loss(batch: torch.Tensor, done: float) -> torch.Tensor:
        noise = training_noise(len(batch), width, output_norm=config.norm) / config.epsilon
        known = functional.dropout(rows[batch], config.dropout)
        answer = (points[batch] + noise) / config.answer_unit
        return functional.cross_entropy(model(torch.cat([known, answer], dim=1)), targets[batch])

    minimise(
        loss,
        model.parameters(),
        config,
        rows=len(rows),
        decay=True,
        stage="reader of noisy columns",
        report=report,
    )
    return _log_odds(model, classes)


def _log_odds(model: nn.Sequential, classes: int) -> Network:
    """Return one output for two classes: the log odds of the second."""
    first = model[0]
    assert isinstance(first, nn.Linear)
    network = from_torch(model.eval(), (first.in_features,))
    last = network.layers[-1]
    assert isinstance(last, Affine)
    if classes > 2:
        return network
    turned = Affine(last.weight[1:] - last.weight[:1], last.bias[1:] - last.bias[:1])
    return Network((*network.layers[:-1], turned), network.input_shape)
