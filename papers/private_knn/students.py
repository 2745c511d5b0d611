"""A student: a classifier of public pictures, a few of which carry a released label."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from reticent.core.arrays import Array
from reticent.core.checks import count, finite_array, positive, probability
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.training.networks import TrainingConfig, minimise
from reticent.training.progress import Report, silent

_ROWS = 1000


@dataclass(frozen=True, kw_only=True)
class StudentConfig(TrainingConfig):
    """Settings of a student, all of them public.

    Attributes:
        image_shape: channels, height, width, at least 4 pixels a side.
        channels: filters of the two convolutions.
        kernel: side of a filter in pixels, odd.
        hidden: widths of the hidden layers. The last one is also the student's feature map.
        labelled_batch: labelled pictures per step, drawn with replacement.
        robustness: q of the loss (1 - p^q)/q of labelled pictures at the end, in (0, 1]. It rises
            from 0, which is cross entropy and learns wrong labels by heart. Towards 1 a label that
            the student does not believe teaches next to nothing.
        confidence: the certainty of the averaged student from which on an unlabelled picture
            teaches, in [0, 1).
        averaging: share that the averaged student keeps of itself at every step, in [0, 1).
        turn: largest rotation and shear of a training picture, radians.
        zoom: largest relative change of its size.
        shift: largest move, as a share of its side.
        flips: True if it may be mirrored left to right.
    """

    image_shape: tuple[int, int, int]
    channels: tuple[int, int] = (32, 64)
    kernel: int = 3
    hidden: tuple[int, ...] = (128,)
    epochs: int = 20
    batch_size: int = 128
    labelled_batch: int = 64
    learning_rate: float = 2e-3
    robustness: float = 0.7
    confidence: float = 0.95
    averaging: float = 0.99
    turn: float = 0.25
    zoom: float = 0.15
    shift: float = 0.1
    flips: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        count(self.labelled_batch, name="labelled_batch")
        if count(self.kernel, name="kernel") % 2 == 0:
            raise InvalidParameter(f"kernel={self.kernel!r}: expected an odd number")
        for width in self.hidden:
            count(width, name="hidden")
        if len(self.image_shape) != 3 or min(self.image_shape[1:]) < 4 or self.image_shape[0] < 1:
            raise InvalidParameter(
                f"image_shape={self.image_shape}: expected channels, height, width of at least "
                "1, 4, 4"
            )
        for filters in self.channels:
            count(filters, name="channels")
        if positive(self.robustness, name="robustness") > 1:
            raise InvalidParameter(f"robustness={self.robustness!r}: expected a number in (0, 1]")
        probability(self.confidence, name="confidence")
        probability(self.averaging, name="averaging")


def as_printed(config: StudentConfig) -> StudentConfig:
    """``config`` with the network that the paper has for MNIST (supplement, Table 1)."""
    return replace(config, channels=(64, 128), kernel=5, hidden=(384, 192))


class Student(nn.Module):
    """Two convolutions, each with a max-pool, hidden layers, logits.

    Args:
        config: its shapes are used.
        classes: number of classes.
    """

    def __init__(self, config: StudentConfig, classes: int) -> None:
        super().__init__()
        self.image_shape = config.image_shape
        planes, height, across = config.image_shape
        layers: list[nn.Module] = []
        for fewer, more in pairwise((planes, *config.channels)):
            convolution = nn.Conv2d(fewer, more, config.kernel, padding=config.kernel // 2)
            layers += [convolution, nn.ReLU(), nn.MaxPool2d(2)]
        layers.append(nn.Flatten())
        flat = config.channels[-1] * (height // 4) * (across // 4)
        for fewer, more in pairwise((flat, *config.hidden)):
            layers += [nn.Linear(fewer, more), nn.ReLU()]
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(config.hidden[-1], classes)

    def embed(self, pictures: torch.Tensor) -> torch.Tensor:
        """Return the last hidden layer, shape (n, width), of flat pictures (n, channels * height *
        width).
        """
        hidden: torch.Tensor = self.features(pictures.reshape(-1, *self.image_shape))
        return hidden

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Return logits, shape (n, classes)."""
        logits: torch.Tensor = self.head(self.embed(pictures))
        return logits

    def probabilities(self, pictures: npt.ArrayLike) -> Array:
        """Return the probability of every class, shape (n, classes), for flat pictures."""
        values = flat_pictures(pictures, self.image_shape)
        self.eval()
        with torch.inference_mode():
            parts = [
                torch.softmax(self.forward(part), dim=1) for part in torch.split(values, _ROWS)
            ]
        return np.asarray(torch.cat(parts).numpy().astype(np.float64))


class UnitLength(nn.Module):
    """Rows, scaled to a length of 1."""

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return rows of the same shape."""
        return functional.normalize(rows)


def flat_pictures(pictures: npt.ArrayLike, image_shape: tuple[int, int, int]) -> torch.Tensor:
    """Return ``pictures`` as a float32 tensor of shape (n, channels * height * width).

    Raises:
        InvalidInput: there are no pictures, they have another number of values, or they hold NaN or
            infinity.
    """
    values = finite_array(pictures, name="pictures")
    size = int(np.prod(image_shape))
    if values.ndim < 2 or int(np.prod(values.shape[1:])) != size:
        raise InvalidInput(
            f"pictures: expected shape (n, {size}) or (n, {image_shape}), got shape={values.shape}"
        )
    return torch.from_numpy(values.reshape(len(values), size).astype(np.float32))


def train_student(
    pictures: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    classes: int,
    config: StudentConfig,
    report: Report = silent,
) -> Student:
    """Train a student on public pictures, those without a label included.

    Labelled pictures teach directly, distorted at random. A running average of the student guesses
    the label of each other picture as it is. Where it is sure, the student has to give the same
    label to a distorted copy. The average is returned. Only released labels enter, so the student
    is post-processing of them.

    Args:
        pictures: shape (n, pixels) or (n, channels, height, width), public.
        labels: shape (n,), 0 to classes - 1, or -1 where none was released.
        classes: number of classes.
        config: settings.
        report: a callback that is told after every epoch.

    Returns:
        The student in evaluation mode.

    Raises:
        InvalidInput: shapes do not fit, or there is no label at all.

    Reference: Sohn et al. 2020 (FixMatch); Tarvainen and Valpola 2017 (averaged teacher); Zhang and
    Sabuncu 2018 (the robust loss).
    """
    inputs = flat_pictures(pictures, config.image_shape)
    given = np.asarray(labels)
    if given.shape != (len(inputs),) or given.dtype.kind not in "iu":
        raise InvalidInput(
            f"labels: expected {len(inputs)} integers, got dtype={given.dtype} shape={given.shape}"
        )
    if given.min() < -1 or given.max() >= count(classes, name="classes", minimum=2):
        raise InvalidInput(f"labels: expected integers in 0..{classes - 1}, or -1 for none")
    known = torch.from_numpy(np.flatnonzero(given >= 0))
    if not len(known):
        raise InvalidInput("labels: expected at least one released label, all were withheld")
    targets = torch.from_numpy(given.astype(np.int64))
    torch.manual_seed(config.seed)
    student = Student(config, classes)
    average = copy.deepcopy(student).requires_grad_(False)

    steps = config.epochs * math.ceil(len(inputs) / config.batch_size)

    def loss(rows: torch.Tensor, progress: float) -> torch.Tensor:
        with torch.no_grad():
            # Early on, a long memory would be of little but the first weights.
            keep = min(config.averaging, (1 + progress * steps) / (10 + progress * steps))
            for kept, fresh in zip(average.parameters(), student.parameters(), strict=True):
                kept.lerp_(fresh, 1 - keep)
            sure, guesses = torch.softmax(average(inputs[rows]), dim=1).max(dim=1)
        lesson = known[torch.randint(len(known), (config.labelled_batch,))]
        logits = student(distort(torch.cat([inputs[lesson], inputs[rows]]), config))
        believed = torch.log_softmax(logits[: len(lesson)], dim=1).gather(1, targets[lesson, None])
        robustness = max(config.robustness * progress, 1e-3)
        told = -torch.expm1(robustness * believed).mean() / robustness
        guessed = functional.cross_entropy(logits[len(lesson) :], guesses, reduction="none")
        return told + (guessed * (sure >= config.confidence)).mean()

    minimise(
        loss,
        student.parameters(),
        config,
        rows=len(inputs),
        decay=True,
        stage="student",
        report=report,
    )
    return average.eval()


def distort(pictures: torch.Tensor, config: StudentConfig) -> torch.Tensor:
    """Return flat pictures, each turned, sheared, zoomed, moved and perhaps mirrored at random by
    torch's generator.
    """
    rows = len(pictures)

    def uniform(largest: float) -> torch.Tensor:
        return (2 * torch.rand(rows) - 1) * largest

    angle, shear = uniform(config.turn), uniform(config.turn)
    across, along = 1 + uniform(config.zoom), 1 + uniform(config.zoom)
    if config.flips:
        across = across * (2.0 * torch.randint(2, (rows,)) - 1)
    cosine, sine = torch.cos(angle), torch.sin(angle)
    # The picture spans -1 to 1, so a share of its side is twice as much here.
    top = torch.stack(
        [across * cosine, along * (shear * cosine - sine), 2 * uniform(config.shift)], dim=1
    )
    bottom = torch.stack(
        [across * sine, along * (shear * sine + cosine), 2 * uniform(config.shift)], dim=1
    )
    images = pictures.reshape(rows, *config.image_shape)
    grid = functional.affine_grid(
        torch.stack([top, bottom], dim=1), list(images.shape), align_corners=False
    )
    return functional.grid_sample(images, grid, align_corners=False).reshape(rows, -1)
