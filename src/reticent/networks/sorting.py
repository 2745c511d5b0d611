"""Sorting of neighbouring values, an activation that enlarges no distance."""

from __future__ import annotations

import numpy as np

from reticent.networks.layers import Activation, ActivationKind, Affine, Layer, Residual


def pair_sort(width: int) -> Residual:
    """Return the layer that turns every pair (a, b) into (max(a, b), min(a, b)), as a residual sum.

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


def is_pair_sort(layer: Layer) -> bool:
    """Return whether ``layer`` equals a layer of ``pair_sort``, to the last bit.

    Example:
        >>> is_pair_sort(pair_sort(4)), is_pair_sort(Activation(ActivationKind.RELU))
        (True, False)
    """
    if not isinstance(layer, Residual) or not layer.branch:
        return False
    last = layer.branch[-1]
    if not isinstance(last, Affine) or last.outputs % 2:
        return False
    expected = pair_sort(last.outputs).branch
    return len(layer.branch) == len(expected) and all(
        _same(found, wanted) for found, wanted in zip(layer.branch, expected, strict=True)
    )


def _same(found: Layer, wanted: Layer) -> bool:
    if isinstance(found, Affine) and isinstance(wanted, Affine):
        return np.array_equal(found.weight, wanted.weight) and np.array_equal(
            found.bias, wanted.bias
        )
    return found == wanted
