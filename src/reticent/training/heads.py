"""The server's model, a classifier trained on released embeddings with their noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from reticent.core.errors import InvalidInput
from reticent.training.networks import TrainingConfig, labelled, minimise, relu_network
from reticent.training.progress import Report, silent

_LEAST_SPREAD, _TINY = 1e-6, 1e-30  # so that values that do not vary can be divided by

AddNoise = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True, kw_only=True)
class HeadConfig(TrainingConfig):
    """Settings of a head.

    Attributes:
        hidden: widths of its hidden layers.
    """

    hidden: tuple[int, ...] = (128, 128)
    epochs: int = 10
    batch_size: int = 500
    learning_rate: float = 3e-3


class Head(nn.Module):
    """A classifier of released values, which are first brought to zero mean and unit variance.

    Args:
        inputs: number of released values per row.
        classes: number of classes.
        hidden: widths of the hidden layers.
    """

    center: torch.Tensor
    spread: torch.Tensor

    def __init__(self, inputs: int, classes: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        self.network = relu_network([inputs, *hidden, classes])
        self.register_buffer("center", torch.zeros(inputs))
        self.register_buffer("spread", torch.ones(inputs))

    def forward(self, released: torch.Tensor) -> torch.Tensor:
        """Return logits, shape (n, classes), of released values of shape (n, inputs)."""
        logits: torch.Tensor = self.network((released - self.center) / self.spread)
        return logits

    def predict(self, released: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return labels, shape (n,), of released values, and -1 where a row is withheld (NaN).

        A withheld answer carries no label, and -1 is wrong under every accuracy that is computed
        from this.
        """
        values = np.asarray(released, dtype=np.float32)
        if values.ndim != 2 or values.shape[1] != len(self.center):
            raise InvalidInput(
                f"released: expected shape (n, {len(self.center)}), got shape={values.shape}"
            )
        withheld = np.asarray(~np.isfinite(values).all(axis=1))
        self.eval()
        with torch.no_grad():
            labels: npt.NDArray[np.int64] = (
                self.forward(torch.from_numpy(np.where(withheld[:, None], 0, values)))
                .argmax(1)
                .numpy()
            )
        labels[withheld] = -1
        return labels


def train_head(
    values: npt.ArrayLike,
    labels: npt.ArrayLike,
    config: HeadConfig,
    *,
    noise: AddNoise | None,
    report: Report = silent,
) -> Head:
    """Train a head on ``values``, with fresh noise on every batch where ``noise`` is given.

    Args:
        values: shape (n, m). Without ``noise`` these are released values, and withheld rows (NaN)
            are left out. With ``noise`` they are the noise-free outputs of public training data.
        labels: shape (n,), integers 0..classes - 1.
        config: widths and settings.
        noise: a function that adds the release noise to a batch, or None when ``values`` carry it
            already.
        report: a callback that is told after every epoch.

    Returns:
        The head in evaluation mode.

    Raises:
        InvalidInput: shapes do not fit, or no row was released.
    """
    raw = np.asarray(values, dtype=np.float32)
    targets = np.asarray(labels)
    if noise is None and raw.ndim == 2 and targets.shape == raw.shape[:1]:
        released = np.isfinite(raw).all(axis=1)
        if not released.any():
            raise InvalidInput("values: expected at least one released row, every row is withheld")
        raw, targets = raw[released], targets[released]
    points, targets_, _ = labelled(raw, targets)
    classes = int(np.asarray(labels).max()) + 1
    torch.manual_seed(config.seed)
    head = Head(points.shape[1], classes, config.hidden)
    seen = points if noise is None else noise(points)
    head.center.copy_(seen.mean(dim=0))
    head.spread.copy_(seen.std(dim=0, correction=0).clamp(min=1e-6))

    def loss(rows: torch.Tensor, _: float) -> torch.Tensor:
        batch = points[rows] if noise is None else noise(points[rows])
        return functional.cross_entropy(head(batch), targets_[rows])

    minimise(
        loss,
        head.parameters(),
        config,
        rows=len(points),
        decay=True,
        stage="head",
        report=report,
    )
    return head.eval()


def linear_head(values: npt.ArrayLike, labels: npt.ArrayLike, *, variance: float) -> Head:
    """Return Fisher's linear rule for values that noise is added to, without training.

    Args:
        values: shape (n, m), noise-free outputs of public training data.
        labels: shape (n,), integers 0..classes - 1.
        variance: that of the noise of every value, above 0 where the values within a class are
            dependent.
    """
    points, targets = np.asarray(values, dtype=np.float64), np.asarray(labels)
    seen = np.bincount(targets)
    sums = np.zeros((len(seen), points.shape[1]))
    np.add.at(sums, targets, points)
    means = sums / np.maximum(seen, 1)[:, None]
    apart = points - means[targets]
    spread = apart.T @ apart / len(points)
    spread += (variance + _LEAST_SPREAD * float(np.trace(spread)) + _TINY) * np.eye(len(spread))
    weights = np.linalg.solve(spread, means.T).T
    offsets = np.log(np.maximum(seen, _TINY) / len(points)) - (weights * means).sum(axis=1) / 2.0
    head = Head(points.shape[1], len(seen), ())
    weights_, offsets_ = torch.from_numpy(weights).float(), torch.from_numpy(offsets).float()
    head.network.load_state_dict({"0.weight": weights_, "0.bias": offsets_})
    return head.eval()
