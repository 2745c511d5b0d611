"""What released embeddings are compared with: raw columns under local privacy, and weights trained by DP-Adam."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from reticent.core.guarantees import Replace
from reticent.core.norms import Norm
from reticent.mechanisms import LaplaceMechanism, StabilityResponse
from reticent.noise import SeededSampler
from reticent.systems.tabular import HALF_ROOT, TabularSchema
from reticent.training.noise import training_noise

Array = npt.NDArray[np.float64]

_SMALLEST_SHARE = 1e-6


def raw_columns(schema: TabularSchema, rows: Array, *, epsilon: float, seed: int) -> Array:
    """Encoded rows under (epsilon, 0)-local differential privacy, attribute by attribute; shape kept.

    Every attribute gets the same share of epsilon: a category by randomised response, a number by Laplace noise of
    sensitivity 1. The whole record costs epsilon by composition. Seeded: for experiments.

    Args:
        schema: the public description of rows.
        rows: shape (n, d), encoded.
        epsilon: budget of a whole record.
        seed: of the noise.
    """
    share = max(epsilon / len(schema.attributes), _SMALLEST_SHARE)
    sampler = SeededSampler(seed)
    released = np.empty_like(rows)
    levels = np.zeros(len(rows), dtype=np.int64)
    for _, part, one_hot in schema.groups:
        width = part.stop - part.start
        if one_hot:
            law = StabilityResponse(classes=width, epsilon=share, adjacency=Replace(1))
            codes = law.release(rows[:, part].argmax(axis=1), levels, sampler=sampler)
            released[:, part] = np.eye(width)[codes] * HALF_ROOT
        else:
            noise = LaplaceMechanism(sensitivity=float(width), epsilon=share, dimension=width, adjacency=Replace(1))
            released[:, part] = noise.release(rows[:, part], sampler=sampler)
    return released


def raw_vector(rows: Array, *, epsilon: float, radius: float, seed: int) -> Array:
    """Encoded rows plus one vector of K-norm noise in l2 that covers ``radius``; shape kept.

    Plain float noise, because the exact law ends at 64 coordinates: for experiments only.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        noise = training_noise(len(rows), rows.shape[1], output_norm=Norm.L2).double().numpy()
    return np.asarray(rows + radius / epsilon * noise)
