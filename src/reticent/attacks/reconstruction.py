"""The reconstruction attack: a decoder trained to draw a picture from its released values.

The attacker is as strong as the setting allows. It knows the embedder, the obfuscator, the noise
distribution and its scale. It owns pictures of the same kind and can release as many of them as it
likes, so every batch of its training carries fresh noise. It does not have the private picture.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional
from typing_extensions import override

from reticent.attacks.critic import Critic, Opponent
from reticent.attacks.decoder import Decoder, DecoderConfig, train_decoder
from reticent.core.checks import count, finite_array, one_of, real
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.training.heads import AddNoise
from reticent.training.progress import Report, silent

Images = npt.NDArray[np.float32]

_CRITIC_RATE = 0.25
"""Learning rate of the critic as a share of the decoder's.

A critic that learns faster recognises all drawn pictures, and its term then has no gradient.
"""


@dataclass(frozen=True, kw_only=True)
class ReconstructionConfig(DecoderConfig):
    """Settings of the attacker's decoder of pictures, beside those of ``DecoderConfig``.

    Attributes:
        architecture: "dense", or "convolutional" for sides that are multiples of 4: a dense layer
            of ``channels`` maps of a quarter of the height and width, doubled twice.
        channels: maps of the convolutional decoder.
        critic: weight, at least 0, of a critic's term in the loss, or 0 for a decoder of least
            error. With a critic, pictures look more like real ones and are further from the true
            one.
        critic_channels: maps of the critic's first convolution.
    """

    epochs: int = 30
    architecture: str = "dense"
    channels: int = 32
    critic: float = 0.0
    critic_channels: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self.architecture, ("dense", "convolutional"), name="architecture")
        count(self.channels, name="channels")
        if real(self.critic, name="critic") < 0:
            raise InvalidParameter(f"critic={self.critic!r}: expected a weight of at least 0")
        count(self.critic_channels, name="critic_channels")


class Reconstructor(Decoder):
    """A trained decoder of released values.

    Args:
        inputs: number of released values per picture.
        image_shape: height and width in pixels.
        config: widths and architecture.
    """

    def __init__(
        self, inputs: int, image_shape: tuple[int, int], config: ReconstructionConfig
    ) -> None:
        super().__init__(inputs, image_shape[0] * image_shape[1], config.hidden)
        self.image_shape = image_shape
        if config.architecture == "convolutional":
            self.network = _upsampling(inputs, image_shape, config)

    @override
    def decode(self, released: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.forward(released))  # the network's outputs are logits of pixels

    def reconstruct(self, released: npt.ArrayLike) -> Images:
        """Return pictures in [0, 1], shape (n, height, width), for values of shape (n, inputs).

        The attacker knows nothing about a withheld row (NaN), so its guess is the mean of its own
        pictures.

        Raises:
            InvalidInput: another number of released values than the attack was trained on.
        """
        return self.decoded(released).reshape(-1, *self.image_shape)


def _upsampling(
    inputs: int, image_shape: tuple[int, int], config: ReconstructionConfig
) -> nn.Sequential:
    height, width = image_shape
    if height % 4 or width % 4:
        raise InvalidInput(
            f"images: a convolutional decoder draws sides that are multiples of 4, got {height} x "
            f"{width}; use architecture='dense'"
        )
    maps = (config.channels, height // 4, width // 4)
    first = config.hidden[0] if config.hidden else config.channels
    return nn.Sequential(
        nn.Linear(inputs, first),
        nn.ReLU(),
        nn.Linear(first, prod(maps)),
        nn.ReLU(),
        nn.Unflatten(1, maps),
        nn.ConvTranspose2d(config.channels, config.channels, 4, stride=2, padding=1),
        nn.ReLU(),
        nn.ConvTranspose2d(config.channels, 1, 4, stride=2, padding=1),
        nn.Flatten(),
    )


def train_reconstructor(
    values: npt.ArrayLike,
    images: npt.ArrayLike,
    config: ReconstructionConfig,
    *,
    noise: AddNoise | None,
    report: Report = silent,
) -> Reconstructor:
    """Train a decoder from released values to pictures, on the attacker's own pictures.

    The loss is the cross entropy per pixel. Its minimum is the posterior mean of the picture, which
    is also the minimum of the squared error. With ``config.critic`` a weighted term is added: the
    decoder's loss from pictures that a critic, trained at the same time, tells from real ones.

    Args:
        values: values of shape (n, m). Without ``noise`` these are released values, and withheld
            rows (NaN) are left out. With ``noise`` they are noise-free outputs of the obfuscator on
            the attacker's pictures.
        images: the picture of each row in [0, 1], shape (n, height, width).
        config: widths and settings.
        noise: a function that adds fresh release noise to a batch, or None if ``values`` carry it
            already.
        report: receiver of the progress, called after every epoch.

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
        raise InvalidInput(
            f"values: expected shape ({len(pictures)}, m) as there are pictures, got "
            f"shape={raw.shape}"
        )
    mean = pictures.mean(axis=0)
    if noise is None:
        kept = np.isfinite(raw).all(axis=1)
        raw, pictures = raw[kept], pictures[kept]
    raw = finite_array(raw, name="values", ndim=2).astype(np.float32)

    torch.manual_seed(config.seed)
    points, targets = torch.from_numpy(raw), torch.from_numpy(pictures.reshape(len(pictures), -1))
    height, width = pictures.shape[1:]
    decoder = Reconstructor(raw.shape[1], (height, width), config)
    seen = points if noise is None else noise(points)
    decoder.adapt(seen, mean.reshape(-1))

    opponent = None
    if config.critic > 0:
        critic = Critic((height, width), config.critic_channels)
        opponent = Opponent(critic, learning_rate=_CRITIC_RATE * config.learning_rate)

    def loss(rows: torch.Tensor) -> torch.Tensor:
        batch = points[rows] if noise is None else noise(points[rows])
        logits = decoder(batch)
        error = functional.binary_cross_entropy_with_logits(logits, targets[rows])
        if opponent is None:
            return error
        drawn = torch.sigmoid(logits)
        opponent.learn(real=targets[rows], drawn=drawn)
        return error + config.critic * opponent.term(drawn)

    train_decoder(
        decoder, loss, config, rows=len(points), stage="reconstruction attack", report=report
    )
    return decoder
