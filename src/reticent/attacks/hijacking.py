"""Feature-space hijacking of released tables: a decoder draws the records.

The attacker owns rows of the same kind and may release as many of them as it likes with the same
encoder. Its decoder learns to turn released values back into rows. Categories are read off as the
largest entry of each one-hot group, as in the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional
from typing_extensions import override

from reticent.attacks.decoder import Decoder, DecoderConfig, train_decoder
from reticent.core.arrays import Array
from reticent.core.checks import finite_array
from reticent.core.errors import InvalidInput
from reticent.training.progress import Report, silent

Group = tuple[str, slice, bool]


@dataclass(frozen=True, kw_only=True)
class HijackingConfig(DecoderConfig):
    """Settings of the attacker's decoder of rows, those of ``DecoderConfig``."""

    epochs: int = 20


class Hijacker(Decoder):
    """A trained decoder from released values to encoded rows.

    Args:
        inputs: number of released values.
        outputs: encoded coordinates of a row.
        hidden: widths of the hidden layers.
    """

    @override
    def forward(self, released: torch.Tensor) -> torch.Tensor:
        return self.guess + super().forward(released)

    def reconstruct(self, released: npt.ArrayLike) -> Array:
        """Return encoded rows, shape (n, outputs).

        For a withheld row (NaN) it is the mean of the attacker's own rows.

        Raises:
            InvalidInput: another number of released values than the attack was trained on.
        """
        return self.decoded(released).astype(np.float64)


def train_hijacker(
    released: npt.ArrayLike,
    rows: npt.ArrayLike,
    config: HijackingConfig,
    *,
    report: Report = silent,
) -> Hijacker:
    """Train a decoder to the least squared error, whose minimum is the posterior mean of the row.

    Args:
        released: releases of the attacker's rows, shape (n, m). Withheld ones (NaN) are left out.
        rows: the attacker's encoded rows, shape (n, d).
        config: widths and settings.
        report: receiver of the progress, called after every epoch.

    Raises:
        InvalidInput: shapes that do not fit, or no row that was released.
    """
    targets = finite_array(rows, name="rows", ndim=2)
    values = np.asarray(released, dtype=np.float64)
    if values.ndim != 2 or len(values) != len(targets):
        raise InvalidInput(
            f"released: expected shape ({len(targets)}, m) as there are rows, got "
            f"shape={values.shape}"
        )
    kept = np.isfinite(values).all(axis=1)
    if not kept.any():
        raise InvalidInput("released: expected at least one released row, every row is withheld")
    torch.manual_seed(config.seed)
    decoder = Hijacker(values.shape[1], targets.shape[1], config.hidden)
    points = torch.from_numpy(values[kept].astype(np.float32))
    wanted = torch.from_numpy(targets[kept].astype(np.float32))
    decoder.adapt(points, targets.mean(axis=0))

    def loss(batch: torch.Tensor) -> torch.Tensor:
        return functional.mse_loss(decoder(points[batch]), wanted[batch])

    train_decoder(decoder, loss, config, rows=len(points), stage="hijacking attack", report=report)
    return decoder


@dataclass(frozen=True)
class HijackingQuality:
    """The quality of an attacker's reconstruction.

    Attributes:
        all_categories: share of rows whose categories were *all* right: the paper's "accuracy".
        category: mean share of categories that were right.
        mean_squared_error: mean squared error per encoded coordinate.
        correlation: Pearson's, of all drawn coordinates with the true ones. NaN where one side is
            constant.
        squared_error: mean squared l2 distance of a row, the quantity of reconstruction bounds.
    """

    all_categories: float
    category: float
    mean_squared_error: float
    correlation: float
    squared_error: float


def hijacking_quality(
    found: npt.ArrayLike, rows: npt.ArrayLike, groups: Sequence[Group]
) -> HijackingQuality:
    """Return how near ``found`` (shape (n, d)) is to the true encoded ``rows``.

    Args:
        found: the attacker's rows.
        rows: the true rows.
        groups: name, coordinates and whether they are one-hot, for each attribute
            (``TabularSchema.groups``).

    Raises:
        InvalidInput: shapes that do not fit, or values that are not finite.

    Edge cases: without one-hot groups both shares of categories are NaN.
    """
    guess = finite_array(found, name="found", ndim=2)
    truth = finite_array(rows, name="rows", ndim=2, columns=guess.shape[1])
    if len(guess) != len(truth):
        raise InvalidInput(f"found: expected {len(truth)} rows, got {len(guess)}")
    right = [
        guess[:, part].argmax(axis=1) == truth[:, part].argmax(axis=1)
        for _, part, one_hot in groups
        if one_hot
    ]
    table = np.stack(right, axis=1) if right else np.full((len(truth), 1), np.nan)
    squared = np.square(guess - truth)
    return HijackingQuality(
        all_categories=float(table.all(axis=1).mean()) if right else float("nan"),
        category=float(table.mean()),
        mean_squared_error=float(squared.mean()),
        correlation=float(np.corrcoef(guess.ravel(), truth.ravel())[0, 1]),
        squared_error=float(squared.sum(axis=1).mean()),
    )


def majority_guess(rows: npt.ArrayLike, count_of: int) -> Array:
    """Return the guess without any answer: the mean of public ``rows``, ``count_of`` times.

    The ``rows`` have shape (n, d).
    The largest entry of the mean of a one-hot code is its most frequent category, so this is the
    majority guess too.
    """
    mean = finite_array(rows, name="rows", ndim=2).mean(axis=0)
    return np.tile(mean, (count_of, 1))
