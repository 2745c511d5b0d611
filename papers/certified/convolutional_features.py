"""A small convolutional feature map, trained on a public data set and then frozen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from reticent.core.checks import count
from reticent.core.errors import InvalidInput
from reticent.training.networks import TrainingConfig, labelled, minimise
from reticent.training.progress import Report, silent


@dataclass(frozen=True, kw_only=True)
class ConvolutionalConfig(TrainingConfig):
    """Settings of a feature map.

    Attributes:
        image_shape: height and width in pixels, at least 10 each.
        channels: filters of the two 4 x 4 convolutions; the first has stride 2.
        width: units of the dense layer that the convolutions are trained with, and that is dropped.
        pool: cells of pool x pixels whose mean is one feature.
    """

    image_shape: tuple[int, int]
    channels: tuple[int, int] = (16, 32)
    width: int = 100
    pool: int = 2
    epochs: int = 2
    batch_size: int = 128
    learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.image_shape) != 2 or min(self.image_shape) < 10:
            raise InvalidInput(
                f"image_shape={self.image_shape}: expected height and width of at least 10"
            )
        for name in ("width", "pool"):
            count(getattr(self, name), name=name)
        for filters in self.channels:
            count(filters, name="channels")


class ConvolutionalFeatures(nn.Module):
    """Two convolutions with ReLU, then means of pool x pool cells: from flat pictures to features.

    Args:
        config: shapes.
    """

    def __init__(self, config: ConvolutionalConfig) -> None:
        super().__init__()
        self.config = config
        first, second = config.channels
        self.convolutions = nn.Sequential(
            nn.Conv2d(1, first, 4, stride=2), nn.ReLU(), nn.Conv2d(first, second, 4), nn.ReLU()
        )

    def planes(self, pictures: torch.Tensor) -> torch.Tensor:
        """Output of the convolutions, shape (n, channels, height, width)."""
        maps: torch.Tensor = self.convolutions(pictures.reshape(-1, 1, *self.config.image_shape))
        return maps

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Features, shape (n, d), of pictures of any shape that holds height x width pixels in a
        row.
        """
        return functional.avg_pool2d(self.planes(pictures), self.config.pool).flatten(1)

    def features(self, pictures: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The same for arrays, float64, one picture at a time: rounding must not tie one record
        to another.
        """
        values = torch.from_numpy(np.asarray(pictures, dtype=np.float32))
        self.eval()
        with torch.inference_mode():
            parts = [self.forward(part) for part in torch.split(values, 1)]
        return torch.cat(parts).numpy().astype(np.float64)


def train_convolutional_features(
    pictures: npt.ArrayLike,
    labels: npt.ArrayLike,
    config: ConvolutionalConfig,
    *,
    report: Report = silent,
) -> ConvolutionalFeatures:
    """A feature map that was trained to tell the classes of a public data set apart.

    Args:
        pictures: shape (n, height, width), public.
        labels: shape (n,), integers 0..classes - 1.
        config: settings.
        report: told after every epoch.

    Returns:
        The map in evaluation mode, without the dense layers.

    Reference: the architecture that Gowal et al. 2018 call small.
    """
    images = np.asarray(pictures, dtype=np.float32)
    if images.ndim != 3 or images.shape[1:] != config.image_shape:
        raise InvalidInput(
            f"pictures: expected shape (n, {config.image_shape}), got shape={images.shape}"
        )
    points, targets, classes = labelled(images.reshape(len(images), -1), labels)
    torch.manual_seed(config.seed)
    convolutions = ConvolutionalFeatures(config)
    size = convolutions.planes(points[:1]).numel()
    head = nn.Sequential(
        nn.Flatten(), nn.Linear(size, config.width), nn.ReLU(), nn.Linear(config.width, classes)
    )

    def loss(rows: torch.Tensor, _: float) -> torch.Tensor:
        return functional.cross_entropy(head(convolutions.planes(points[rows])), targets[rows])

    minimise(
        loss,
        [*convolutions.parameters(), *head.parameters()],
        config,
        rows=len(points),
        decay=True,
        stage="feature map",
        report=report,
    )
    return convolutions.eval()
