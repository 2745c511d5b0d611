"""Sorting of neighbouring values: an activation that changes no distance by more than it should."""

from __future__ import annotations

import numpy as np

from reticent.networks.layers import Activation, ActivationKind, Affine, Residual


def pair_sort(width: int) -> Residual:
    """The layer that turns every pair (a, b) into (max(a, b), min(a, b)), as a residual sum.

    Example:
        >>> from reticent.networks import Network
        >>> layers = (Affine(np.eye(2), np.zeros(2)), pair_sort(2))
        >>> Network(layers, (2,)).forward([[1.0, 3.0]]).tolist()
        [[3.0, 1.0]]
    """
    half = np.arange(width // 2)
    difference, spread = np.zeros((width // 2, width)), np.zeros((width, width // 2))
    difference[half, 2 * half], difference[half, 2 * half + 1] = -1.0, 1.0
    spread[2 * half, half], spread[2 * half + 1, half] = 1.0, -1.0
    return Residual(
        (
            Affine(difference, np.zeros(width // 2)),
            Activation(ActivationKind.RELU),
            Affine(spread, np.zeros(width)),
        )
    )
