"""Codes of table rows: the classifier of public rows that gives them, and their worth once they are
randomised.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from reticent.core.arrays import Array, Integers
from reticent.core.errors import InvalidInput, UnknownName
from reticent.networks import Network, from_torch
from reticent.training.networks import TrainingConfig, labelled, minimise, relu_network
from reticent.training.progress import Report, silent

THRESHOLDS = ("even", "quantiles")

_HINGES = 32
_STEEPNESS = 4.0
_LEAST_SPREAD = 1e-3


@dataclass(frozen=True, kw_only=True)
class CodeConfig(TrainingConfig):
    """Settings of the classifier behind the codes.

    Attributes:
        numeric: coordinates of numeric columns. Each is also offered as hinges max(0, s (x - t)) at
            up to 32 thresholds t, by which steps in a number are learnt from few rows.
        thresholds: "even" over the public range, with s = 4, or "quantiles" of the rows, with s = 1
            / their standard deviation. The first is for numbers where steps of the scale matter.
            The second is for rows that fill a small part of the range, as on HIGGS.
        hidden: widths of its hidden layers behind them.
    """

    numeric: tuple[int, ...] = ()
    thresholds: str = "even"
    hidden: tuple[int, ...] = (64,)
    epochs: int = 10
    batch_size: int = 250
    learning_rate: float = 3e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.thresholds not in THRESHOLDS:
            raise UnknownName(
                f"thresholds={self.thresholds!r}: expected one of {', '.join(THRESHOLDS)}"
            )


def train_classifier(
    rows: npt.ArrayLike, labels: npt.ArrayLike, config: CodeConfig, *, report: Report = silent
) -> Network:
    """Train a classifier. Return its logits as plain layers.

    Args:
        rows: shape (n, d), encoded rows, public.
        labels: shape (n,), integers from 0, at least two classes.
        config: sizes and settings.
        report: a callback that is told after every epoch.

    Raises:
        InvalidInput: rows and labels do not fit.
    """
    points, targets, classes = labelled(rows, labels)
    torch.manual_seed(config.seed)
    slopes, offsets, columns = _hinges(np.asarray(points), config)
    hinges = nn.Linear(points.shape[1], len(columns))
    with torch.no_grad():
        hinges.weight.zero_()
        hinges.weight[torch.arange(len(columns)), torch.from_numpy(columns)] = torch.from_numpy(
            slopes
        ).float()
        hinges.bias.copy_(torch.from_numpy(offsets))
    network = nn.Sequential(
        hinges, nn.ReLU(), *relu_network([hinges.out_features, *config.hidden, classes])
    )
    minimise(
        lambda batch, _: functional.cross_entropy(network(points[batch]), targets[batch]),
        network.parameters(),
        config,
        rows=len(points),
        decay=True,
        stage="classifier of codes",
        report=report,
    )
    return from_torch(network.eval(), (points.shape[1],))


def _hinges(points: Array, config: CodeConfig) -> tuple[Array, Array, Integers]:
    """Return the first layer: slope, offset and column of every unit, a unit for each coordinate
    itself first.

    Encoded coordinates are at least 0, so that a ReLU keeps them as they are. With "quantiles"
    numeric ones count from their least value, in standard deviations.
    """
    dimension = points.shape[1]
    slopes, offsets = [np.ones(dimension)], [np.zeros(dimension)]
    columns = [np.arange(dimension)]
    for column in config.numeric:
        values = points[:, column].astype(np.float64)
        if config.thresholds == "even":
            steepness, places = _STEEPNESS, np.arange(_HINGES) / _HINGES
        else:
            steepness = 1.0 / max(float(values.std()), _LEAST_SPREAD)
            places = np.unique(np.quantile(values, np.linspace(0.0, 1.0, _HINGES + 2)[1:-1]))
            slopes[0][column], offsets[0][column] = steepness, -steepness * values.min()
        slopes.append(np.full(len(places), steepness))
        offsets.append(-steepness * places)
        columns.append(np.full(len(places), column))
    return np.concatenate(slopes), np.concatenate(offsets), np.concatenate(columns)


def best_codes(logits: Array, labels: Integers, *, epsilon: float) -> tuple[tuple[int, ...], float]:
    """Return the classes to tell apart by randomised response, and the accuracy that a server can
    then reach.

    Fewer codes are told more truly: with k codes the true one comes out with probability e^epsilon
    / (e^epsilon + k - 1). For each k the k most frequent classes are tried. A server that knows the
    channel decides for the likeliest label of each code.

    Args:
        logits: shape (n, classes), of calibration rows.
        labels: shape (n,), their labels.
        epsilon: budget of the response.

    Raises:
        InvalidInput: there are fewer than two classes.
    """
    classes = logits.shape[1]
    if classes < 2:
        raise InvalidInput("logits: expected at least two classes")
    frequent = np.argsort(-np.bincount(labels, minlength=classes), kind="stable")
    best: tuple[tuple[int, ...], float] = ((), -1.0)
    for size in range(2, classes + 1):
        chosen = np.sort(frequent[:size])
        codes = logits[:, chosen].argmax(axis=1)
        joint = np.zeros((size, classes))
        np.add.at(joint, (codes, labels), 1.0 / len(labels))
        lie = 1.0 / (np.exp(min(epsilon, 700.0)) + size - 1)
        channel = np.full((size, size), lie)
        np.fill_diagonal(channel, 1.0 - (size - 1) * lie)
        accuracy = float((channel.T @ joint).max(axis=1).sum())
        if accuracy > best[1] + 1e-12:
            best = (tuple(int(index) for index in chosen), accuracy)
    return best


def best_local_accuracy(epsilon: float, *, majority: float, bayes: float) -> float:
    """Return the highest accuracy of *any* two-class prediction from an (epsilon, 0)-locally
    private answer about each row.

    Let q(x) be the probability that label 1 is predicted for x. Privacy says q(x) <= e^epsilon
    q(x') and the same of 1 - q, and accuracy is linear in q. With q between its least and largest
    value, accuracy is highest where q takes the largest exactly where label 1 is likelier. The
    pairs (least, largest) that privacy allows form a polygon with corners (0, 0), (1, 1) and
    (1, e^epsilon) / (1 + e^epsilon). At a corner the prediction is always the same label, or
    randomised response on the best classifier.

    Args:
        epsilon: the budget of one answer.
        majority: share of the more frequent label.
        bayes: accuracy of the best classifier of unprotected rows.

    Example:
        >>> best_local_accuracy(1.0, majority=0.76, bayes=0.87)
        0.76
    """
    right = 1.0 / (1.0 + float(np.exp(-epsilon)))
    return max(majority, right * bayes + (1.0 - right) * (1.0 - bayes))
