"""The attacker's decoder: a network trained to draw the input back from what is released of it.

The attacker is as strong as the setting allows. It knows the encoder, the noise distribution and
its scale. It owns inputs of the same kind and can release as many of them as it likes. It does not
have the private input.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from reticent.attacks.critic import Critic, Opponent
from reticent.core.checks import count, finite_array, one_of, real
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.training.heads import AddNoise
from reticent.training.networks import TrainingConfig, minimise, relu_network
from reticent.training.progress import Report, silent

Array32 = npt.NDArray[np.float32]

_CRITIC_RATE = 0.25
"""Learning rate of the critic as a share of the decoder's.

A critic that learns faster recognises all drawn pictures, and its term then has no gradient.
"""


@dataclass(frozen=True, kw_only=True)
class DecoderConfig(TrainingConfig):
    """Settings of an attacker's decoder.

    Attributes:
        hidden: widths of its hidden layers.
        architecture: "dense", or for pictures "convolutional", whose sides are multiples of 4: a
            dense layer of ``channels`` maps of a quarter of the height and width, doubled twice.
        channels: maps of the convolutional decoder.
        critic: for pictures, weight, at least 0, of a critic's term in the loss, or 0 for a decoder
            of least error. With a critic, pictures look more like real ones and are further from
            the true one.
        critic_channels: maps of the critic's first convolution.
    """

    hidden: tuple[int, ...] = (256, 256)
    epochs: int = 30
    batch_size: int = 250
    learning_rate: float = 2e-3
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


class Decoder(nn.Module):
    """A trained decoder of released values, which it first brings to zero mean and unit variance.

    Args:
        inputs: number of released values.
        shape: shape of one input: (coordinates,) of a row, or (height, width) of a picture.
        config: widths and architecture.
    """

    center: torch.Tensor
    spread: torch.Tensor
    guess: torch.Tensor

    def __init__(self, inputs: int, shape: tuple[int, ...], config: DecoderConfig) -> None:
        super().__init__()
        self.shape = shape
        if config.architecture == "convolutional":
            self.network = _upsampling(inputs, shape, config)
        else:
            self.network = relu_network([inputs, *config.hidden, prod(shape)])
        self.register_buffer("center", torch.zeros(inputs))
        self.register_buffer("spread", torch.ones(inputs))
        self.register_buffer("guess", torch.zeros(prod(shape)))

    def forward(self, released: torch.Tensor) -> torch.Tensor:
        """Return decoded rows, or logits of the pixels of pictures, shape (n, outputs)."""
        outputs: torch.Tensor = self.network((released - self.center) / self.spread)
        return outputs if len(self.shape) == 2 else self.guess + outputs

    def reconstruct(self, released: npt.ArrayLike) -> Array32:
        """Return drawn inputs, shape (n, *shape), for values of shape (n, inputs).

        The attacker knows nothing about a withheld row (NaN), so its guess is the mean of its own
        inputs.

        Raises:
            InvalidInput: another number of released values than the attack was trained on.
        """
        values = np.asarray(released, dtype=np.float32)
        if values.ndim != 2 or values.shape[1] != len(self.center):
            raise InvalidInput(
                f"released: expected shape (n, {len(self.center)}), got shape={values.shape}"
            )
        withheld = np.asarray(~np.isfinite(values).all(axis=1), dtype=np.bool_)
        with torch.no_grad():
            drawn = self.forward(torch.from_numpy(np.where(withheld[:, None], 0, values)))
            rows: Array32 = (torch.sigmoid(drawn) if len(self.shape) == 2 else drawn).numpy()
        rows[withheld] = self.guess.numpy()
        return rows.reshape(-1, *self.shape)


def _upsampling(inputs: int, shape: tuple[int, ...], config: DecoderConfig) -> nn.Sequential:
    height, width = shape
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


def train_decoder(
    values: npt.ArrayLike,
    targets: npt.ArrayLike,
    config: DecoderConfig,
    *,
    noise: AddNoise | None = None,
    report: Report = silent,
) -> Decoder:
    """Train a decoder from released values to inputs, on the attacker's own.

    The loss is the cross entropy per pixel of pictures, and the squared error of rows. The minimum
    of both is the posterior mean. With ``config.critic`` a weighted term is added: the decoder's
    loss from pictures that a critic, trained at the same time, tells from real ones.

    Args:
        values: values of shape (n, m). Without ``noise`` these are released values, and withheld
            rows (NaN) are left out. With ``noise`` they are noise-free outputs of the encoder on
            the attacker's inputs.
        targets: the input of each row: a picture in [0, 1], shape (n, height, width), or an encoded
            row, shape (n, d).
        config: widths and settings.
        noise: a function that adds fresh release noise to a batch, or None if ``values`` carry it
            already.
        report: receiver of the progress, called after every epoch.

    Returns:
        The decoder in evaluation mode.

    Raises:
        InvalidInput: shapes that do not fit, pixels out of [0, 1], or no row that was released.
    """
    pictures = np.ndim(targets) == 3
    wanted = finite_array(targets, name="targets", ndim=3 if pictures else 2).astype(np.float32)
    if pictures and (wanted.min() < 0 or wanted.max() > 1):
        raise InvalidInput("targets: expected values in [0, 1]; divide pixels in 0..255 by 255")
    raw = np.asarray(values, dtype=np.float32)
    if raw.ndim != 2 or len(raw) != len(wanted):
        raise InvalidInput(
            f"values: expected shape ({len(wanted)}, m) as there are targets, got shape={raw.shape}"
        )
    mean = wanted.mean(axis=0)
    if noise is None:
        kept = np.isfinite(raw).all(axis=1)
        raw, wanted = raw[kept], wanted[kept]
    raw = finite_array(raw, name="values", ndim=2).astype(np.float32)

    torch.manual_seed(config.seed)
    points, truth = torch.from_numpy(raw), torch.from_numpy(wanted.reshape(len(wanted), -1))
    decoder = Decoder(raw.shape[1], wanted.shape[1:], config)
    seen = points if noise is None else noise(points)
    decoder.center.copy_(seen.mean(dim=0))
    decoder.spread.copy_(seen.std(dim=0, correction=0).clamp(min=1e-6))
    decoder.guess.copy_(torch.from_numpy(mean.reshape(-1)))
    opponent = None
    if config.critic > 0:
        critic = Critic(wanted.shape[1:], config.critic_channels)
        opponent = Opponent(critic, learning_rate=_CRITIC_RATE * config.learning_rate)

    def loss(rows: torch.Tensor, _: float) -> torch.Tensor:
        drawn = decoder(points[rows] if noise is None else noise(points[rows]))
        if not pictures:
            return functional.mse_loss(drawn, truth[rows])
        error = functional.binary_cross_entropy_with_logits(drawn, truth[rows])
        if opponent is None:
            return error
        shown = torch.sigmoid(drawn)
        opponent.learn(real=truth[rows], drawn=shown)
        return error + config.critic * opponent.term(shown)

    minimise(
        loss,
        decoder.parameters(),
        config,
        rows=len(points),
        decay=True,
        stage="decoder",
        report=report,
    )
    return decoder.eval()
