"""The decoder of several attacks: its settings, its scaling of released values, its training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from reticent.core.errors import InvalidInput
from reticent.training.networks import TrainingConfig, minimise, relu_network
from reticent.training.progress import Report

Array32 = npt.NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class DecoderConfig(TrainingConfig):
    """Settings of an attacker's decoder.

    Attributes:
        hidden: widths of its hidden layers.
    """

    hidden: tuple[int, ...] = (256, 256)
    epochs: int
    batch_size: int = 250
    learning_rate: float = 2e-3


class Decoder(nn.Module):
    """A network of released values, which are first brought to zero mean and unit variance.

    Args:
        inputs: number of released values.
        outputs: number of decoded values.
        hidden: widths of the hidden layers.
    """

    center: torch.Tensor
    spread: torch.Tensor
    guess: torch.Tensor

    def __init__(self, inputs: int, outputs: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        self.network = relu_network([inputs, *hidden, outputs])
        self.register_buffer("center", torch.zeros(inputs))
        self.register_buffer("spread", torch.ones(inputs))
        self.register_buffer("guess", torch.zeros(outputs))

    def adapt(self, seen: torch.Tensor, guess: npt.NDArray[np.floating]) -> None:
        """Set the scaling from released values ``seen`` (n, inputs).

        The ``guess`` (outputs,) takes the place of a withheld row.
        """
        self.center.copy_(seen.mean(dim=0))
        self.spread.copy_(seen.std(dim=0, correction=0).clamp(min=1e-6))
        self.guess.copy_(torch.from_numpy(guess))

    def forward(self, released: torch.Tensor) -> torch.Tensor:
        """Return the loss's input, shape (n, outputs), for released values, shape (n, inputs)."""
        outputs: torch.Tensor = self.network((released - self.center) / self.spread)
        return outputs

    def decode(self, released: torch.Tensor) -> torch.Tensor:
        """Return decoded rows, shape (n, outputs), in the units of ``guess``."""
        return self.forward(released)

    def decoded(self, released: npt.ArrayLike) -> Array32:
        """Return decoded rows, shape (n, outputs), with ``guess`` for a withheld row (NaN).

        Raises:
            InvalidInput: another number of released values than the decoder was trained on.
        """
        values = np.asarray(released, dtype=np.float32)
        if values.ndim != 2 or values.shape[1] != len(self.center):
            raise InvalidInput(
                f"released: expected shape (n, {len(self.center)}), got shape={values.shape}"
            )
        withheld = np.asarray(~np.isfinite(values).all(axis=1), dtype=np.bool_)
        with torch.no_grad():
            rows: Array32 = self.decode(
                torch.from_numpy(np.where(withheld[:, None], np.float32(0), values))
            ).numpy()
        rows[withheld] = self.guess.numpy()
        return rows


def train_decoder(
    decoder: Decoder,
    loss: Callable[[torch.Tensor], torch.Tensor],
    config: DecoderConfig,
    *,
    rows: int,
    stage: str,
    report: Report,
) -> None:
    """Train ``decoder`` in place.

    It draws from torch's global generator, which the caller seeds.

    Args:
        decoder: the decoder, left in evaluation mode.
        loss: the loss as a function of the row numbers of a batch.
        config: settings.
        rows: number of training rows.
        stage: name given to ``report``.
        report: receiver of the progress, called after every epoch.
    """
    minimise(
        lambda batch, _: loss(batch),
        decoder.parameters(),
        config,
        rows=rows,
        decay=True,
        stage=stage,
        report=report,
    )
    decoder.eval()
