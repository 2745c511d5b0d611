"""The reconstruction attack: a decoder trained to draw the picture from what was released about it.

The attacker is as strong as the setting allows: it knows the embedder, the obfuscator, the noise law and its
scale, owns pictures of the same kind, and can release as many of them as it likes, so that every batch of its
training carries fresh noise. What it does not have is the private picture.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from reticent.core.checks import count, finite_array, positive
from reticent.core.errors import InvalidInput
from reticent.training.heads import AddNoise
from reticent.training.networks import minimise, relu_network
from reticent.training.progress import Report, silent

Images = npt.NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class ReconstructionConfig:
    """Settings of the attacker's decoder.

    Attributes:
        hidden: widths of its hidden layers.
        epochs: passes over the attacker's own pictures.
        batch_size: pictures per step.
        learning_rate: of Adam at the start; it falls to 0 along half a cosine.
        seed: seed of weights, order and noise.
    """

    hidden: tuple[int, ...] = (256, 256)
    epochs: int = 30
    batch_size: int = 250
    learning_rate: float = 2e-3
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size"):
            count(getattr(self, name), name=name)
        positive(self.learning_rate, name="learning_rate")


class Reconstructor(nn.Module):
    """A trained decoder of released values.

    Args:
        inputs: number of released values per picture.
        image_shape: height and width in pixels.
        hidden: widths of the hidden layers.
    """

    center: torch.Tensor
    spread: torch.Tensor
    mean_picture: torch.Tensor

    def __init__(self, inputs: int, image_shape: tuple[int, int], hidden: tuple[int, ...]) -> None:
        super().__init__()
        self.image_shape = image_shape
        self.network = relu_network([inputs, *hidden, image_shape[0] * image_shape[1]])
        self.register_buffer("center", torch.zeros(inputs))
        self.register_buffer("spread", torch.ones(inputs))
        self.register_buffer("mean_picture", torch.zeros(image_shape))

    def forward(self, released: torch.Tensor) -> torch.Tensor:
        """Pixel logits, shape (n, height * width), of released values of shape (n, inputs)."""
        logits: torch.Tensor = self.network((released - self.center) / self.spread)
        return logits

    def reconstruct(self, released: npt.ArrayLike) -> Images:
        """Pictures in [0, 1], shape (n, height, width), of released values of shape (n, inputs).

        About a withheld row (NaN) the attacker knows nothing; its guess is the mean of its own pictures.

        Raises:
            InvalidInput: another number of released values than the attack was trained on.
        """
        values = np.asarray(released, dtype=np.float32)
        if values.ndim != 2 or values.shape[1] != len(self.center):
            raise InvalidInput(f"released: expected shape (n, {len(self.center)}), got shape={values.shape}")
        withheld = np.asarray(~np.isfinite(values).all(axis=1), dtype=np.bool_)
        self.eval()
        with torch.no_grad():
            seen = torch.from_numpy(np.where(withheld[:, None], np.float32(0), values))
            pictures: Images = torch.sigmoid(self.forward(seen)).numpy().reshape(-1, *self.image_shape)
        pictures[withheld] = self.mean_picture.numpy()
        return pictures


def train_reconstructor(
    values: npt.ArrayLike,
    images: npt.ArrayLike,
    config: ReconstructionConfig,
    *,
    noise: AddNoise | None,
    report: Report = silent,
) -> Reconstructor:
    """A decoder from released values to pictures, trained on the attacker's own pictures.

    The loss is the cross entropy per pixel; its minimum is the posterior mean of the picture, which is also the
    minimum of the squared error.

    Args:
        values: shape (n, m). Without ``noise`` these are released values: withheld rows (NaN) are left out. With
            ``noise`` they are noise-free outputs of the obfuscator on the attacker's pictures.
        images: shape (n, height, width), in [0, 1]: the picture of each row.
        config: widths and settings.
        noise: adds fresh release noise to a batch, or None when ``values`` carry it already.
        report: told after every epoch.

    Returns:
        The decoder in evaluation mode.

    Raises:
        InvalidInput: shapes that do not fit, pixels out of [0, 1], or no row that was released.
    """
    pictures = finite_array(images, name="images", ndim=3).astype(np.float32)
    if pictures.min() < 0 or pictures.max() > 1:
        raise InvalidInput("images: expected values in [0, 1]; divide pixels in 0..255 by 255")
    raw = np.asarray(values, dtype=np.float32)
    if raw.ndim != 2 or len(raw) != len(pictures):
        raise InvalidInput(f"values: expected shape ({len(pictures)}, m) as there are pictures, got shape={raw.shape}")
    mean = pictures.mean(axis=0)
    if noise is None:
        kept = np.isfinite(raw).all(axis=1)
        raw, pictures = raw[kept], pictures[kept]
    raw = finite_array(raw, name="values", ndim=2).astype(np.float32)

    torch.manual_seed(config.seed)
    points, targets = torch.from_numpy(raw), torch.from_numpy(pictures.reshape(len(pictures), -1))
    height, width = pictures.shape[1:]
    decoder = Reconstructor(raw.shape[1], (height, width), config.hidden)
    seen = points if noise is None else noise(points)
    decoder.center.copy_(seen.mean(dim=0))
    decoder.spread.copy_(seen.std(dim=0, correction=0).clamp(min=1e-6))
    decoder.mean_picture.copy_(torch.from_numpy(mean))

    def loss(rows: torch.Tensor, _: float) -> torch.Tensor:
        batch = points[rows] if noise is None else noise(points[rows])
        return functional.binary_cross_entropy_with_logits(decoder(batch), targets[rows])

    minimise(
        loss,
        decoder.parameters(),
        rows=len(points),
        epochs=config.epochs,
        batch_size=config.batch_size,
        learning_rate=config.learning_rate,
        decay=True,
        stage="reconstruction attack",
        report=report,
    )
    return decoder.eval()
