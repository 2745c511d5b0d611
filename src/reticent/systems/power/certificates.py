"""The Lipschitz constant of the encoder of tables: it is public, and computed once.

On the global path the constant depends on no point, so it only has to be *valid*. Nothing has to
be isotone.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.errors import CertificationFailed, UnsupportedNetwork
from reticent.networks import Affine, Network
from reticent.networks.sorting import is_pair_sort

_ROUNDOFF = 2.0**-53
_UNDERFLOW = 2.0**-1000
_LARGEST_EXPONENT = 300


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
    """Return (b, e) such that b 2^e is at least the largest singular value.

    b is from 2^-1 to 2^40, or 0 for a matrix of zeros. The largest entry is brought to [1/2, 1) by
    a power of two first. That is exact but for entries that underflow, and the products of entries
    that are left may underflow too. Either moves an entry of the Gram matrix by at most 2^-1020 for
    each term of its sum, whether the processor keeps denormal numbers or not. 2^-1000 is charged.
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
    """Return at least mantissa 2^exponent, for a mantissa of at least 0.

    It is 0 for 0, and infinity beyond the largest double.
    """
    try:
        value = math.ldexp(mantissa, exponent)
    except OverflowError:
        return math.inf
    exact = mantissa == 0.0 or math.ldexp(value, -exponent) == mantissa
    return value if exact else math.nextafter(value, math.inf)


def sorting_bound(network: Network) -> float:
    """Return the constant P, l2 to l2, of affine layers and pair sorts over the whole space.

    It is the product of the layers' spectral norms.

    **Guarantee.** ||f(x) - f(x')||_2 <= P ||x - x'||_2 for all x, x'. *Why.* An affine map has the
    constant of its matrix. Sorting a pair has constant 1. For a >= b and c >= d, |(a, b) - (c,
    d)|^2 <= |(a, b) - (d, c)|^2, because ac + bd >= ad + bc. So of the orders in which the two
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
    return _rounded_up(constant * (1.0 + 2.0**-40), exponent)
