"""Lipschitz constants of the two encoders of tables, over the public box: both are public, and
computed once.

On the global path the constant depends on no point, so it only has to be *valid*; nothing has to
be isotone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.errors import CertificationFailed, UnsupportedNetwork
from reticent.core.regions import Box
from reticent.core.rounding import spectral_norm_bound, sum_error
from reticent.networks import Affine, Network
from reticent.networks.sorting import is_pair_sort

if TYPE_CHECKING:
    from reticent.training.power.published import PowerNetwork


_ROUNDOFF = 2.0**-53
_UNDERFLOW = 2.0**-1000
_LARGEST_EXPONENT = 300
_FUNCTION = 1e-12
"""Far above the few units in the last place that a library's tanh may be off by."""


@dataclass(frozen=True)
class EncoderBound:
    """A proved Lipschitz constant, l2 to l2, over the public box.

    Attributes:
        kind: how it was proved: "sorting", "power" or "none" (where no constant is needed).
        constant: P, at least 0.
    """

    kind: str
    constant: float


def spectral_bound(matrix: npt.ArrayLike) -> float:
    """An upper bound on the largest singular value, sqrt(||W' W||_inf), its rounding included.

    Exact for matrices with orthonormal rows or columns, which is what it is used on. Entries may
    have any size: see ``_scaled_spectral_bound``.

    Example:
        >>> round(spectral_bound([[0.6, 0.8], [-0.8, 0.6]]), 9)
        1.0
    """
    mantissa, exponent = _scaled_spectral_bound(np.asarray(matrix, dtype=np.float64))
    return _rounded_up(mantissa, exponent)


def _scaled_spectral_bound(matrix: Array) -> tuple[float, int]:
    """(b, e) such that b 2^e is at least the largest singular value: b from 2^-1 to 2^40, or 0 for
    a matrix of zeros.

    The largest entry is brought to [1/2, 1) by a power of two first. That is exact but for
    entries that underflow, and the products of entries that are left may underflow too. Either
    moves an entry of the Gram matrix by at most 2^-1020 for each term of its sum, whether the
    processor keeps denormal numbers or not; 2^-1000 is charged.
    """
    weight = np.atleast_2d(matrix)
    if weight.shape[0] < weight.shape[1]:
        weight = weight.T
    largest = float(np.abs(weight).max(initial=0.0))
    if largest == 0.0:
        return 0.0, 0
    exponent = math.frexp(largest)[1]
    with np.errstate(under="ignore"):
        weight = np.ldexp(weight, -exponent)
        gram, magnitude = weight.T @ weight, np.abs(weight).T @ np.abs(weight)
    # Each entry is a sum of len(weight) products: off by at most (len + 2) u times the sum of their
    # magnitudes.
    error = 2.0 * (len(weight) + 2) * _ROUNDOFF * magnitude + len(weight) * _UNDERFLOW
    rounding = 1.0 + 2.0**-40 + len(gram) * 2.0 * _ROUNDOFF
    return float(np.sqrt((np.abs(gram) + error).sum(axis=1).max())) * rounding, exponent


def _rounded_up(mantissa: float, exponent: int) -> float:
    """At least mantissa 2^exponent, for a mantissa of at least 0: 0 for 0, infinity beyond the
    largest double.
    """
    try:
        value = math.ldexp(mantissa, exponent)
    except OverflowError:
        return math.inf
    exact = mantissa == 0.0 or math.ldexp(value, -exponent) == mantissa
    return value if exact else math.nextafter(value, math.inf)


def sorting_bound(network: Network) -> EncoderBound:
    """The constant of affine layers and pair sorts: the product of the layers' spectral norms, over
    the whole space.

    **Guarantee.** ||f(x) - f(x')||_2 <= P ||x - x'||_2 for all x, x'. *Why.* An affine map has the
    constant of its matrix. Sorting a pair has constant 1: for a >= b and c >= d, |(a, b) - (c,
    d)|^2 <= |(a, b) - (d, c)|^2, because ac + bd >= ad + bc; so of the orders in which the two
    pairs may stand, sorting both never moves them farther apart.

    *Floating point.* Rounding is charged in every factor. Powers of two are kept apart until the
    end, so no product of them underflows on the way.

    Raises:
        UnsupportedNetwork: another kind of layer.
        CertificationFailed: a constant of 0, or beyond 2^-300 to 2^300.
    """
    constant, exponent = 1.0, 0
    for layer in network.layers:
        if isinstance(layer, Affine):
            factor, power = _scaled_spectral_bound(layer.weight)
            constant, carry = math.frexp(constant * factor * (1.0 + 4.0 * _ROUNDOFF))
            exponent += power + carry
        elif not is_pair_sort(layer):
            raise UnsupportedNetwork("encoder: expected affine layers and pair sorts")
    if constant == 0.0 or abs(exponent) > _LARGEST_EXPONENT:
        raise CertificationFailed(
            "encoder: its Lipschitz constant is 0 or beyond 2^-300 to 2^300; expected rescaled "
            "weights"
        )
    return EncoderBound("sorting", _rounded_up(constant * (1.0 + 2.0**-40), exponent))


def power_bound(network: PowerNetwork, domain: Box) -> EncoderBound:
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
    return EncoderBound("power", constant)
