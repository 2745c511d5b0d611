"""Intervals around the weights of a hidden layer, to compare with its ball: a study, in plain
floating point, and no certificate.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from reticent.core.arrays import Array, Integers
from reticent.retraining import HiddenSettings
from reticent.retraining.reserves import Records


def interval_certified(
    X: Array, y: Integers, queries: Array, settings: HiddenSettings, *, seed: int, k: int
) -> npt.NDArray[np.bool_]:
    """Return for each query whether all weights that k records more or less could have given, by
    interval arithmetic about the weights of ``hidden_model``, give it one label; shape (n,).

    It flatters intervals: a record that comes is no longer in any coordinate than those there are.
    """
    records = Records.of(X, y, settings, None)
    points, signs, truth = records.points, settings.signs, records.signs
    sizes, asked = np.abs(points), settings.points(queries)
    weights = settings.start(seed)
    radius = np.zeros_like(weights)
    most = 0.5 * k * sizes.max(axis=0, initial=0.0) / np.sqrt(settings.units)

    def ends(rows: Array) -> tuple[Array, Array, Array, Array]:
        middle, spread = rows @ weights.T, np.abs(rows) @ radius.T
        low, high = np.tanh(middle - spread), np.tanh(middle + spread)
        return low, high, 0.5 * (low + high) @ signs, 0.5 * (high - low) @ np.abs(signs)

    for _ in range(settings.steps):
        low, high, margin, spread = ends(points)
        units = np.tanh(points @ weights.T)
        pull = np.minimum(expit(-truth * (units @ signs)), 0.5)
        least = np.minimum(expit(-truth * margin - spread), 0.5)
        largest = np.minimum(expit(-truth * margin + spread), 0.5)
        flat = np.maximum(np.abs(low), np.abs(high))
        steep = np.where(low * high < 0, 0.0, np.minimum(np.abs(low), np.abs(high)))
        above = (1.0 - steep * steep) * largest[:, None]
        below = (1.0 - flat * flat) * least[:, None]
        gradient = ((1.0 - units * units) * (truth * pull)[:, None]).T @ points
        middle = (0.5 * (above + below) * truth[:, None]).T @ points
        width = (0.5 * (above - below)).T @ sizes * np.abs(signs)[:, None] + most
        apart = np.abs((middle - gradient) * signs[:, None])
        radius = radius + settings.rate * (width + apart)
        weights = weights + settings.rate * (gradient * signs[:, None])
    _, _, margin, spread = ends(asked)
    nominal = np.tanh(asked @ weights.T) @ signs
    return np.asarray((np.abs(margin) > spread) & ((margin > 0) == (nominal > 0)))
