"""The beta-VAE that turns pictures into the embeddings in which neighbourhoods are measured.

Its latent space gives a radius R its meaning. It is therefore trained for reconstruction alone,
exactly as published, and never for labels, for privacy or for a favourable scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from reticent.core.checks import count, positive, probability
from reticent.core.errors import InvalidInput, UnknownName
from reticent.training.networks import TrainingConfig, minimise
from reticent.training.progress import Report, silent

Images = npt.NDArray[np.float32]
Embeddings = npt.NDArray[np.float32]

ARCHITECTURES = ("dense", "convolutional")
"""Architectures of encoder and decoder."""


@dataclass(frozen=True, kw_only=True)
class EmbedderConfig(TrainingConfig):
    """Everything that decides an embedder, apart from the pictures.

    Attributes:
        image_shape: height and width in pixels, multiples of 4 for the convolutional architecture.
        latent_dimension: number of latents, 1 or more (published: 8 for MNIST and Fashion-MNIST, 10
            for UTKFace).
        architecture: ``dense`` (three layers with dropout) or ``convolutional``.
        beta: weight of the Kullback-Leibler term (published: 5).
        dropout: share of hidden units dropped in the dense encoder.
        width: units of the first dense layer. The last convolution has an eighth as many channels.
    """

    image_shape: tuple[int, int]
    latent_dimension: int
    architecture: str = "dense"
    beta: float = 5.0
    epochs: int = 20
    batch_size: int = 128
    learning_rate: float = 1e-3
    dropout: float = 0.1
    width: int = 512

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.architecture not in ARCHITECTURES:
            raise UnknownName(
                f"architecture={self.architecture!r}: expected one of {', '.join(ARCHITECTURES)}"
            )
        for name in ("latent_dimension", "width"):
            count(getattr(self, name), name=name)
        positive(self.beta, name="beta")
        probability(self.dropout, name="dropout")
        step = 4 if self.architecture == "convolutional" else 1
        if len(self.image_shape) != 2 or any(side < 1 or side % step for side in self.image_shape):
            raise InvalidInput(
                f"image_shape={self.image_shape}: expected height and width, multiples of {step}"
            )


class Embedder(nn.Module):
    """A trained beta-VAE. Its embedding is the posterior *mean*, its decoder draws pictures of
    neighbours.

    Args:
        config: sizes and architecture.
    """

    def __init__(self, config: EmbedderConfig) -> None:
        super().__init__()
        self.config = config
        build = _dense if config.architecture == "dense" else _convolutional
        self.encoder, self.decoder = build(config)

    def posterior(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return mean and log-variance of the latents of ``images`` (n, height, width), each of
        shape (n, latents).
        """
        mean, log_variance = self.encoder(images.unsqueeze(1)).chunk(2, dim=1)
        return mean, log_variance

    def encode(self, images: torch.Tensor) -> torch.Tensor:
        """Return embeddings, shape (n, latents), of ``images`` of shape (n, height, width) in
        [0, 1].
        """
        return self.posterior(images)[0]

    def decode(self, embeddings: torch.Tensor) -> torch.Tensor:
        """Return pictures in [0, 1], shape (n, height, width), of ``embeddings`` of shape
        (n, latents).
        """
        return torch.sigmoid(self._pixel_logits(embeddings))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the same as ``encode``, so that the module can be used wherever an encoder is
        expected.
        """
        return self.encode(images)

    def embed(self, images: Images, *, batch_size: int = 1000) -> Embeddings:
        """Return embeddings of a whole array of pictures, without gradients or dropout.

        Args:
            images: shape (n, height, width), float32 in [0, 1].
            batch_size: pictures at a time.

        Returns:
            Shape (n, latents), float32.

        Raises:
            InvalidInput: pictures have another shape than the embedder was made for.
        """
        _check_images(images, self.config)
        self.eval()
        with torch.no_grad():
            parts = [
                self.encode(torch.from_numpy(images[i : i + batch_size])).numpy()
                for i in range(0, len(images), batch_size)
            ]
        return (
            np.concatenate(parts)
            if parts
            else np.empty((0, self.config.latent_dimension), np.float32)
        )

    def pictures(self, embeddings: npt.ArrayLike) -> Images:
        """Return decoded pictures, shape (n, height, width) in [0, 1], of embeddings of shape
        (n, latents).
        """
        self.eval()
        with torch.no_grad():
            decoded: Images = self.decode(
                torch.as_tensor(np.asarray(embeddings, dtype=np.float32))
            ).numpy()
        return decoded

    def _pixel_logits(self, embeddings: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.decoder(embeddings)
        return logits.view(-1, *self.config.image_shape)


def train_embedder(images: Images, config: EmbedderConfig, *, report: Report = silent) -> Embedder:
    """Train a beta-VAE on ``images``: summed binary cross entropy plus beta times the
    Kullback-Leibler term.

    Args:
        images: shape (n, height, width), float32 in [0, 1].
        config: architecture and settings.
        report: a callback that is told after every epoch (``progress.bar`` shows a progress bar).

    Returns:
        The embedder in evaluation mode.

    Raises:
        InvalidInput: ``images`` is empty or of another shape than ``config.image_shape``.

    Reference:
        Higgins et al., "beta-VAE", ICLR 2017, equation 4; settings of Singh et al., "Posthoc
        privacy guarantees for collaborative inference", supplement D.
    """
    _check_images(images, config)
    if len(images) == 0:
        raise InvalidInput("images: expected at least one picture, got none")
    torch.manual_seed(config.seed)
    embedder = Embedder(config)
    pictures = torch.from_numpy(images)

    def loss(rows: torch.Tensor, _: float) -> torch.Tensor:
        batch = pictures[rows]
        mean, log_variance = embedder.posterior(batch)
        latents = mean + torch.randn_like(mean) * torch.exp(0.5 * log_variance)
        reconstruction = functional.binary_cross_entropy_with_logits(
            embedder._pixel_logits(latents), batch, reduction="sum"
        ) / len(batch)
        divergence = (
            0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum() / len(batch)
        )
        return reconstruction + config.beta * divergence

    minimise(
        loss,
        embedder.train().parameters(),
        config,
        rows=len(pictures),
        decay=False,
        stage="embedder",
        report=report,
    )
    return embedder.eval()


def _check_images(images: Images, config: EmbedderConfig) -> None:
    if images.ndim != 3 or images.shape[1:] != config.image_shape or images.dtype != np.float32:
        raise InvalidInput(
            f"images: expected float32 of shape (n, {config.image_shape[0]}, "
            f"{config.image_shape[1]}), "
            f"got dtype={images.dtype} shape={images.shape}"
        )


def _dense(config: EmbedderConfig) -> tuple[nn.Module, nn.Module]:
    pixels = config.image_shape[0] * config.image_shape[1]
    first, second = config.width, max(config.width // 2, 1)
    encoder = nn.Sequential(
        nn.Flatten(),
        nn.Linear(pixels, first),
        nn.ReLU(),
        nn.Dropout(config.dropout),
        nn.Linear(first, second),
        nn.ReLU(),
        nn.Dropout(config.dropout),
        nn.Linear(second, 2 * config.latent_dimension),
    )
    decoder = nn.Sequential(
        nn.Linear(config.latent_dimension, second),
        nn.ReLU(),
        nn.Linear(second, first),
        nn.ReLU(),
        nn.Linear(first, pixels),
    )
    return encoder, decoder


def _convolutional(config: EmbedderConfig) -> tuple[nn.Module, nn.Module]:
    """Return stride-2 convolutions of 4 x 4 down to at most 7 pixels a side, and their mirror
    image.
    """
    height, width = config.image_shape
    halvings = 2
    while (
        height % 2 ** (halvings + 1) == 0
        and width % 2 ** (halvings + 1) == 0
        and min(height, width) // 2**halvings > 7
    ):
        halvings += 1
    channels = [1, *(max(config.width // 8 // 2 ** (halvings - 1 - i), 1) for i in range(halvings))]
    small = (height // 2**halvings, width // 2**halvings)
    flat = channels[-1] * small[0] * small[1]
    down: list[nn.Module] = []
    up: list[nn.Module] = []
    for fewer, more in pairwise(channels):
        down += [nn.Conv2d(fewer, more, 4, stride=2, padding=1), nn.ReLU()]
        up = [nn.ReLU(), nn.ConvTranspose2d(more, fewer, 4, stride=2, padding=1), *up]
    encoder = nn.Sequential(
        *down,
        nn.Flatten(),
        nn.Linear(flat, 128),
        nn.ReLU(),
        nn.Linear(128, 2 * config.latent_dimension),
    )
    decoder = nn.Sequential(
        nn.Linear(config.latent_dimension, 128),
        nn.ReLU(),
        nn.Linear(128, flat),
        nn.Unflatten(1, (channels[-1], *small)),
        *up,
    )
    return encoder, decoder
