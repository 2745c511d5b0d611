"""A public model of free coordinates and of protected ones that are released with noise."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from reticent.core.norms import Norm
from reticent.networks import Affine, Network, from_torch
from reticent.training.networks import TrainingConfig, labelled, minimise, relu_network
from reticent.training.noise import training_noise
from reticent.training.progress import Report, silent


def train_reader(
    free: npt.ArrayLike,
    near: npt.ArrayLike,
    labels: npt.ArrayLike,
    config: TrainingConfig,
    *,
    epsilon: float,
    norm: Norm,
    hidden: int,
    answer_unit: float,
    dropout: float = 0.0,
    report: Report = silent,
) -> Network:
    """Train the model through the noise of its release. Return log odds of the labels.

    Args:
        free: shape (n, free), whose first column is one.
        near: shape (n, protected), in radii.
        labels: shape (n,), integers from 0, at least two classes.
        config: passes, batches, learning rate and seed.
        epsilon: budget that the answer will be given.
        norm: the norm of neighbours, l2 or l-infinity.
        hidden: width of both layers.
        answer_unit: radii that one unit of what the model reads stands for.
        dropout: share of the free coordinates that are left out in a step.
        report: a callback that is told after every epoch.

    Raises:
        InvalidInput: rows and labels do not fit.
    """
    rows, targets, classes = labelled(free, labels)
    points = torch.from_numpy(np.asarray(near, dtype=np.float32))
    torch.manual_seed(config.seed)
    width = points.shape[1]
    model = relu_network([rows.shape[1] + width, hidden, hidden, classes])

    def loss(batch: torch.Tensor, done: float) -> torch.Tensor:
        noise = training_noise(len(batch), width, output_norm=norm) / epsilon
        known = functional.dropout(rows[batch], dropout)
        answer = (points[batch] + noise) / answer_unit
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
