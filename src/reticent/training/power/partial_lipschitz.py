"""Scores that are 1-Lipschitz in some coordinates and arbitrary in the others.

They are trained through the noise or the levels of their release, together with the public model
that reads them. They are affine maps of slope at most 1 in the norm of neighbours, then in
l-infinity, with pair sorts between. Their constants come from a network of the other coordinates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from reticent.core.arrays import Integers
from reticent.core.checks import count, one_of, positive, probability
from reticent.core.errors import InvalidParameter
from reticent.core.norms import Norm
from reticent.networks import Affine, Network, from_torch
from reticent.training.networks import (
    TrainingConfig,
    labelled,
    minimise,
    relu_network,
    rescale,
    sorted_pairs,
)
from reticent.training.noise import check_first_noise, noise_share, training_noise
from reticent.training.progress import Report, silent

ANSWERS = ("noise", "levels")
_SPREAD = 3.0  # radii that one unit of a constant's network moves a score by
_LEVELS = 13


@dataclass(frozen=True, kw_only=True)
class PartialLipschitzConfig(TrainingConfig):
    """Everything that decides scores and model, apart from the rows.

    Attributes:
        epsilon: budget that the answer will be given.
        norm: the norm of neighbours, l2 or l-infinity. ``groups`` matter for the latter.
        groups: for each protected attribute its number of coordinates, and whether they are a
            one-hot code.
        answer: "noise" or "levels".
        outputs: number of scores, 1 for levels.
        hidden: width of the scores' layers, even, and of the networks beside them.
        dropout: share of the free coordinates that are left out in a step.
        first_noise: the same as in ``LipschitzEncoderConfig``.
        answer_unit: radii that one unit of what the model reads stands for.
    """

    epsilon: float
    norm: Norm
    groups: tuple[tuple[int, bool], ...]
    answer: str
    outputs: int
    hidden: int = 64
    epochs: int = 20
    batch_size: int = 250
    learning_rate: float = 5e-3
    dropout: float = 0.0
    first_noise: float = 0.2
    answer_unit: float = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("epsilon", "answer_unit"):
            positive(getattr(self, name), name=name)
        for name in ("outputs", "hidden"):
            count(getattr(self, name), name=name)
        check_first_noise(self.first_noise)
        probability(self.dropout, name="dropout")
        if self.hidden % 2:
            raise InvalidParameter(
                f"hidden={self.hidden!r}: expected an even width, because values are sorted in "
                "pairs"
            )
        one_of(self.answer, ANSWERS, name="answer")


class PartialScores(nn.Module):
    """Scores t(u, z).

    Args:
        config: sizes.
        free: coordinates of u, the constant one included.
    """

    def __init__(self, config: PartialLipschitzConfig, free: int) -> None:
        super().__init__()
        self.config, width = config, config.hidden
        protected = sum(size for size, _ in config.groups)
        self.sizes = (width, width, config.outputs)
        self.first = nn.Parameter(torch.randn(width, protected))
        self.second = nn.Parameter(torch.eye(width) + 0.1 * torch.randn(width, width))
        self.last = nn.Parameter(0.3 * torch.randn(config.outputs, width))
        self.shifts = relu_network([free, config.hidden, config.hidden, sum(self.sizes)])

    def slopes(self) -> list[torch.Tensor]:
        """Return the three matrices, no row of which is steeper than 1."""
        first = _centred(self.first, self.config)
        steep = _steepness(first, self.config).clamp(min=1e-9)
        later = [
            matrix / matrix.abs().sum(dim=1, keepdim=True).clamp(min=1.0)
            for matrix in (self.second, self.last)
        ]
        return [first / steep[:, None], *later]

    def forward(self, free: torch.Tensor, near: torch.Tensor) -> torch.Tensor:
        """Return scores in radii, shape (n, outputs).

        Args:
            free: shape (n, free).
            near: shape (n, protected), in radii.
        """
        shifts: torch.Tensor = _SPREAD * self.shifts(free)
        values, start = near, 0
        for place, matrix in enumerate(self.slopes()):
            values = functional.linear(values, matrix) + shifts[:, start : start + len(matrix)]
            start += len(matrix)
            if place < 2:
                values = sorted_pairs(values)
        return values


def _centred(matrix: torch.Tensor, config: PartialLipschitzConfig) -> torch.Tensor:
    """Return the weights of a one-hot code less their middle, which constants make up for.

    Only their spread counts, and integers have to hold them.
    """
    parts = torch.split(matrix, [size for size, _ in config.groups], dim=1)
    return torch.cat(
        [
            part - 0.5 * (part.amax(dim=1, keepdim=True) + part.amin(dim=1, keepdim=True))
            if one_hot
            else part
            for part, (_, one_hot) in zip(parts, config.groups, strict=True)
        ],
        dim=1,
    )


def _steepness(matrix: torch.Tensor, config: PartialLipschitzConfig) -> torch.Tensor:
    """Return what ``Protection.weight`` bounds, differentiably."""
    if config.norm is Norm.L2:
        return matrix.square().sum(dim=1).sqrt()
    parts = torch.split(matrix, [size for size, _ in config.groups], dim=1)
    return torch.stack(
        [
            part.amax(dim=1) - part.amin(dim=1) if one_hot else part.abs().sum(dim=1)
            for part, (_, one_hot) in zip(parts, config.groups, strict=True)
        ]
    ).sum(dim=0)


@dataclass(frozen=True, eq=False)
class TrainedScores:
    """The result of training.

    Attributes:
        weights: the three matrices as integers. A row of constant ``whole`` has slope 1.
        shifts: network of the free coordinates, in radii.
        model: log odds of the labels, from free coordinates and answer.
        loss: the loss of the last epoch.
    """

    weights: tuple[Integers, ...]
    shifts: Network
    model: Network
    loss: float


def train_partial_scores(
    free: npt.ArrayLike,
    near: npt.ArrayLike,
    labels: npt.ArrayLike,
    config: PartialLipschitzConfig,
    *,
    whole: int,
    report: Report = silent,
) -> TrainedScores:
    """Train scores and the model that reads their noisy answer.

    Args:
        free: shape (n, free), whose first column is one.
        near: shape (n, protected), in radii.
        labels: shape (n,), integers from 0, at least two classes.
        config: budget, sizes and settings.
        whole: constant of integer weights of slope 1.
        report: a callback that is told after every epoch.

    Raises:
        InvalidInput: rows and labels do not fit.
    """
    rows, targets, classes = labelled(free, labels)
    points = torch.from_numpy(np.asarray(near, dtype=np.float32))
    torch.manual_seed(config.seed)
    scores = PartialScores(config, rows.shape[1])
    model = _model(rows.shape[1] + config.outputs, config, classes)

    def loss(batch: torch.Tensor, done: float) -> torch.Tensor:
        known = functional.dropout(rows[batch], config.dropout)
        found = scores(known, points[batch])
        if config.answer == "levels":
            return _level_loss(model, known, found[:, 0], targets[batch], config.epsilon)
        noise = training_noise(len(batch), config.outputs, output_norm=Norm.LINF)
        share = noise_share(done, first=config.first_noise)
        answer = (found + share / config.epsilon * noise) / config.answer_unit
        return functional.cross_entropy(model(torch.cat([known, answer], dim=1)), targets[batch])

    mean = minimise(
        loss,
        [*scores.parameters(), *model.parameters()],
        config,
        rows=len(rows),
        decay=True,
        stage=f"scores with {config.answer}, {config.outputs} outputs",
        report=report,
        fused=True,
    )
    weights = [matrix.detach().double().numpy() for matrix in scores.slopes()]
    # Each entry is cut towards 0, and of a one-hot code the spread may grow by one.
    cut = tuple(
        np.trunc(matrix * (whole - len(config.groups) - 1)).astype(np.int64) for matrix in weights
    )
    rescale(scores.shifts.double(), torch.tensor(_SPREAD))
    shifts = from_torch(scores.shifts.eval(), (rows.shape[1],))
    return TrainedScores(cut, shifts, _log_odds(model, classes), mean)


def train_reader(
    free: npt.ArrayLike,
    near: npt.ArrayLike,
    labels: npt.ArrayLike,
    config: PartialLipschitzConfig,
    *,
    report: Report = silent,
) -> Network:
    """Train the public model for protected coordinates that are released with noise themselves."""
    rows, targets, classes = labelled(free, labels)
    points = torch.from_numpy(np.asarray(near, dtype=np.float32))
    torch.manual_seed(config.seed)
    width = points.shape[1]
    model = _model(rows.shape[1] + width, config, classes)

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
        fused=True,
    )
    return _log_odds(model, classes)


def _model(inputs: int, config: PartialLipschitzConfig, classes: int) -> nn.Sequential:
    return relu_network([inputs, config.hidden, config.hidden, classes])


def _level_loss(
    model: nn.Module,
    known: torch.Tensor,
    score: torch.Tensor,
    targets: torch.Tensor,
    epsilon: float,
) -> torch.Tensor:
    """Return the expected loss over both answers, exactly."""
    chance = side_chance(score, epsilon=epsilon)
    both = [
        functional.cross_entropy(
            model(torch.cat([known, torch.full_like(known[:, :1], side)], dim=1)),
            targets,
            reduction="none",
        )
        for side in (1.0, -1.0)
    ]
    return (chance * both[0] + (1.0 - chance) * both[1]).mean()


def side_chance(score: torch.Tensor, *, epsilon: float) -> torch.Tensor:
    """Return the probability that a level response names the upper side, between the middles of
    levels by interpolation, shape of ``score`` (in radii).
    """
    lies = [math.exp(-epsilon * level) / (math.exp(epsilon) + 1.0) for level in range(_LEVELS)]
    upper = [1.0 - lie for lie in lies]
    table = torch.tensor([*reversed(lies), *upper], dtype=score.dtype)
    place = (score - 0.5).clamp(-_LEVELS, _LEVELS - 1.001)
    below = place.floor()
    share = place - below
    index = (below + _LEVELS).long()
    return table[index] * (1.0 - share) + table[index + 1] * share


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
