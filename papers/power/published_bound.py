"""A Lipschitz constant of the published power encoder over a box. No release rests on it."""

from __future__ import annotations

import numpy as np

from reticent.core.errors import CertificationFailed
from reticent.core.regions import Box
from reticent.core.rounding import spectral_norm_bound, sum_error
from reticent.published.power_network import PowerNetwork

_FUNCTION = 1e-12
"""Far above the few units in the last place that a library's tanh may be off by."""


def power_bound(network: PowerNetwork, domain: Box) -> float:
    """The constant of w -> H(w) w, p times, over a box.

    **Guarantee.** ||G(x) - G(x')||_2 <= P ||x - x'||_2 for all x, x' in ``domain``. *Why.* With
    g(w) = B w + sum_k h_k(w) V_k w,

        J(w) = H(w) + A(w) h'(w),    H(w) = B + sum_k h_k(w) V_k,    A(w) = [V_1 w, ..., V_K w].

    Over the box every entry of H and of A lies within a radius of its value at the middle; the norm
    of a matrix is at most that of the middle plus that of the radii (triangle inequality, and |M|
    <= R entrywise gives ||M|| <= ||R||). ||h'(w)|| is at most the product of the tanh layers'
    matrices' norms, each row scaled by the largest slope of its tanh over the box. A box is convex,
    so the largest ||J|| over it is a constant on it. For p > 1 the box is carried through g by
    intervals. Proof in full: docs/power.md.

    Raises:
        CertificationFailed: the bound is not a finite number.
    """
    lower, upper = domain.lower, domain.upper
    matrix = network.matrix.detach().double().numpy()
    directions = network.directions.detach().double().numpy()
    layers = [
        (layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy())
        for layer in network.layers
    ]
    # Twice what a sum of this many products can be off by, so that the sums that measure it may be
    # off as well.
    error = 2.0 * sum_error(
        max(
            len(lower),
            *directions.shape,
            *(width for weight, _ in layers for width in weight.shape),
        )
        + 8
    )
    magnitudes = np.abs(directions)
    constant = 1.0
    for _ in range(network.power):
        middle = 0.5 * (lower + upper)
        radius = np.maximum(upper - middle, middle - lower) * (1.0 + error)
        center, reach = middle, radius
        slope_norm = 1.0
        for weight, bias in layers:
            pre, spread = weight @ center + bias, np.abs(weight) @ reach
            spread = spread * (1.0 + error) + error * (
                np.abs(weight) @ np.abs(center) + np.abs(bias)
            )
            low, high = np.tanh(pre - spread), np.tanh(pre + spread)
            nearest = np.maximum(0.0, np.abs(pre) - spread)  # where tanh is steepest
            steepest = 1.0 - np.square(np.tanh(nearest)) + _FUNCTION
            slope_norm *= spectral_norm_bound(steepest[:, None] * weight) * (1.0 + error)
            center, reach = 0.5 * (low + high), 0.5 * (high - low) * (1.0 + error) + _FUNCTION
        turn_middle = matrix + np.einsum("k,kij->ij", center, directions)
        turn_radius = np.einsum("k,kij->ij", reach, magnitudes) * (1.0 + error)
        turn_radius += error * (np.abs(matrix) + np.einsum("k,kij->ij", np.abs(center), magnitudes))
        drift_middle = np.einsum("kij,j->ik", directions, middle)
        drift_radius = np.einsum(
            "kij,j->ik", magnitudes, radius * (1.0 + error) + error * np.abs(middle)
        )
        turn = spectral_norm_bound(turn_middle) + spectral_norm_bound(turn_radius)
        drift = spectral_norm_bound(drift_middle) + spectral_norm_bound(drift_radius)
        constant *= (turn + drift * slope_norm) * (1.0 + error)
        image = turn_middle @ middle
        extent = (np.abs(turn_middle) + turn_radius) @ radius + turn_radius @ np.abs(middle)
        # Measured against the magnitudes that were added: the image itself may be a small
        # difference of large ones.
        extent = extent * (1.0 + error) + error * (np.abs(turn_middle) @ np.abs(middle))
        lower, upper = image - extent, image + extent
    if not np.isfinite(constant):
        raise CertificationFailed(
            "encoder: its Lipschitz bound over the public box is not finite; train with a "
            "smaller power"
        )
    return constant
