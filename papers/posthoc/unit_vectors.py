"""PrivUnit: a unit vector for any two of them, as its authors published it, a rival of codes.

In floating point and with a seed: what it prints is measured, and not private.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import betaincinv, betaln, expit, logit

from reticent.core.arrays import Array

_TRIED = np.geomspace(1e-4, 0.5, 400)  # shares of the sphere within the cap


def priv_unit(units: Array, *, epsilon: float, seed: int) -> Array:
    """Return unbiased releases of unit vectors, shape (n, d).

    A release is a random unit vector from a cap around the input, or else from the rest of the
    sphere, over its mean length. Of all caps the one of the longest mean is taken.

    Args:
        units: shape (n, d), rows of length 1, d at least 3.
        epsilon: above 0, for any two of them.
        seed: seed of the noise.

    References:
        - Bhowmick, Duchi, Freudiger, Kapoor and Rogers (2018), "Protection against reconstruction
          and its applications in private federated learning", arXiv:1812.00984, algorithm 1.
        - Asi, Feldman and Talwar (2022), "Optimal algorithms for mean estimation under local
          differential privacy", arXiv:2205.02466, the best split of epsilon.
    """
    random, (rows, size) = np.random.default_rng(seed), units.shape
    half = (size - 1) / 2

    def along(shares: Array) -> Array:
        """Return the coordinate along the input that a share of the sphere lies below."""
        return np.asarray(2.0 * betaincinv(half, half, shares) - 1.0)

    def mean(share: float) -> float:
        """Return the mean coordinate along the input, for a cap of this share of the sphere."""
        level = float(along(np.array(1.0 - share)))
        beyond = math.exp(half * math.log1p(-(level**2)) - betaln(half, half)) / (4.0**half * half)
        chance = expit(epsilon + logit(share))
        return float(beyond * (chance / share - (1.0 - chance) / (1.0 - share)))

    share = max(_TRIED, key=mean)
    chance = float(expit(epsilon + logit(share)))
    within = random.random(rows) < chance
    level = random.random(rows)
    coordinate = along(np.where(within, 1.0 - share * level, (1.0 - share) * level))
    sideways = random.standard_normal(units.shape)
    sideways -= (sideways * units).sum(axis=1, keepdims=True) * units
    sideways /= np.linalg.norm(sideways, axis=1, keepdims=True)
    drawn = coordinate[:, None] * units + np.sqrt(1.0 - coordinate**2)[:, None] * sideways
    return np.asarray(drawn / mean(share))
