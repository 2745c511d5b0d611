"""The simplest releases of a row and of a label, which demonstrations and papers compare with."""

from __future__ import annotations

import math

import numpy as np
import torch

from reticent.core.arrays import Array
from reticent.core.norms import Norm
from reticent.systems.power.protection import Protection
from reticent.tables.attributes import HALF_ROOT
from reticent.tables.schema import TabularSchema
from reticent.training.noise import training_noise

RESPONSE = "randomised response on the label"


def response_accuracy(accuracy: float, *, epsilon: float, classes: int) -> float:
    """Return the expected accuracy of randomised response on the labels of a model; any two inputs
    are neighbours.

    Args:
        accuracy: of the model's labels, in [0, 1].
        epsilon: of one answer, above 0.
        classes: how many labels there are.

    Example:
        >>> round(response_accuracy(1.0, epsilon=math.log(9), classes=10), 3)
        0.5
    """
    kept = math.exp(epsilon) / (math.exp(epsilon) + classes - 1)
    return accuracy * kept + (1.0 - accuracy) * (1.0 - kept) / (classes - 1)


def raw_columns(schema: TabularSchema, rows: Array, *, epsilon: float, seed: int) -> Array:
    """Return encoded rows under (epsilon, 0)-local differential privacy, attribute by attribute;
    shape kept.

    Every attribute gets the same share of epsilon: a category by randomised response, a number by
    Laplace noise of sensitivity 1. The whole record costs epsilon by composition. Plain float noise
    from a seed: for experiments only.

    Args:
        schema: the public description of rows.
        rows: shape (n, d), encoded.
        epsilon: budget of a whole record.
        seed: of the noise.
    """
    share = epsilon / len(schema.attributes)
    random = np.random.default_rng(seed)
    released = np.empty_like(rows)
    for _, part, one_hot in schema.groups:
        width = part.stop - part.start
        if one_hot:
            codes = rows[:, part].argmax(axis=1)
            lie = random.random(len(rows)) > 1.0 / (1.0 + (width - 1) * np.exp(-share))
            told = np.where(lie, (codes + random.integers(1, width, len(rows))) % width, codes)
            released[:, part] = np.eye(width)[told] * HALF_ROOT
        else:
            # Two coordinates where a number may be missing: together at most their number apart in
            # l1.
            released[:, part] = rows[:, part] + random.laplace(
                scale=width / share, size=(len(rows), width)
            )
    return released


def clear_columns(
    schema: TabularSchema, rows: Array, *, epsilon: float, radius: float, seed: int
) -> Array:
    """Return encoded rows, what the radius leaves unprotected in clear, and K-norm noise in l2 on
    the rest; shape kept.

    Plain float noise from a seed: for experiments only.

    Args:
        schema: the public description of rows.
        rows: shape (n, d), encoded.
        epsilon: budget of a record.
        radius: of neighbours in l2, below that of a category's change.
        seed: of the noise.
    """
    released = rows.copy()
    protected = Protection(schema, radius).protected
    released[:, protected] = raw_vector(
        rows[:, protected], epsilon=epsilon, radius=radius, seed=seed
    )
    return released


def raw_vector(rows: Array, *, epsilon: float, radius: float, seed: int) -> Array:
    """Return encoded rows plus one vector of K-norm noise in l2 that covers ``radius``; shape kept.

    Plain float noise, because the exact distribution ends at 64 coordinates: for experiments only.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        noise = training_noise(len(rows), rows.shape[1], output_norm=Norm.L2).double().numpy()
    return np.asarray(rows + radius / epsilon * noise)
