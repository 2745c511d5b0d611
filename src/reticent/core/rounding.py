"""Bounds on the error of a floating-point sum or norm, from the number of its terms. They hold with
their own rounding.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from reticent.core.errors import InvalidParameter, UnsupportedNorm
from reticent.core.norms import Norm, operator_norm

_ROUNDOFF = 2.0**-53
_MOST_TERMS = 2**40
_MOST_COLUMNS = 4096
"""Singular values of more columns than this are not computed."""


def sum_error(terms: int) -> float:
    """Return gamma_n = n u / (1 - n u), rounded up. A float64 sum of n products in any order is off
    by at most gamma_n times the sum of their magnitudes.

    Args:
        terms: n, the number of rounded operations that one term can pass through, 0 to 2**40.

    Raises:
        InvalidParameter: more terms than that.

    Example:
        >>> sum_error(2**13) > 2.0**-40
        True

    References:
        - Higham (2002), "Accuracy and stability of numerical algorithms",
          doi:10.1137/1.9780898718027, section 3.1 (underflow is not covered).
    """
    if not 0 <= terms <= _MOST_TERMS:
        raise InvalidParameter(f"terms={terms!r}: expected 0 to 2**40")
    return terms * _ROUNDOFF * (1.0 + 2.0**-10)


def operator_norm_bound(matrix: npt.ArrayLike, input_norm: Norm, output_norm: Norm) -> float:
    """Return an upper bound on the operator norm of ``matrix``: ``operator_norm`` with a proved
    margin for all of its rounding.

    Args:
        matrix: shape (m, n), entries 0 or from 2**-400 to 2**400 in magnitude, for which nothing
            over- or underflows.
        input_norm: norm of the n inputs.
        output_norm: norm of the m outputs.

    Raises:
        UnsupportedNorm: the pair is not supported by ``operator_norm``, or needs singular values of
            more than 4,096 columns and rows.

    Example:
        >>> operator_norm_bound([[3.0, 4.0]], Norm.L2, Norm.LINF) >= 5.0
        True
    """
    array = np.atleast_2d(np.asarray(matrix, dtype=np.float64))
    if input_norm is Norm.L2 and output_norm is Norm.L2:
        return spectral_norm_bound(array)
    # Signs are enumerated over at most 20 rows or columns. Their sums may cancel, but the error of
    # a sum is relative to the sum of all magnitudes. The largest sum over all signs is at least a
    # seventh of that (Khinchine: 1 / sqrt(2 * 20)).
    terms = 8 * (sum(array.shape) + 8)
    return operator_norm(array, input_norm, output_norm) * (1.0 + sum_error(terms))


def spectral_norm_bound(matrix: npt.ArrayLike) -> float:
    """Return an upper bound on the largest singular value of ``matrix``, whatever the routine that
    computed it.

    With V any computed right singular vectors, ||A|| <= ||A V|| ||V^-1||. ||A V||^2 is at most the
    largest row sum of the magnitudes of (A V)' (A V), which is nearly diagonal. ||V^-1||^2 is at
    most 1 / (1 - ||V' V - I||). Rounding is charged in every product.

    Args:
        matrix: shape (m, n), entries 0 or from 2**-400 to 2**400 in magnitude.

    Raises:
        UnsupportedNorm: more than 4,096 columns and rows.

    Example:
        >>> 0 <= spectral_norm_bound([[3.0, 4.0], [0.0, 0.0]]) - 5.0 < 1e-12
        True

    References:
        - Rump (2011), "Verified bounds for singular values, in particular for the spectral norm of
          a matrix and its inverse", BIT Numerical Mathematics.
    """
    tall = np.atleast_2d(np.asarray(matrix, dtype=np.float64))
    if tall.shape[0] < tall.shape[1]:
        tall = tall.T
    rows, columns = tall.shape
    if columns > _MOST_COLUMNS:
        raise UnsupportedNorm(
            f"singular values of {rows} x {columns} entries: expected at most {_MOST_COLUMNS} "
            "columns or rows"
        )
    largest = float(np.abs(tall).max(initial=0.0))
    if largest == 0.0:
        return 0.0
    exponent = math.frexp(largest)[1]
    tall = np.ldexp(tall, -exponent)
    rotation = np.linalg.eigh(tall.T @ tall)[1]
    turned = tall @ rotation
    frobenius = float(np.linalg.norm(tall) * np.linalg.norm(rotation)) * (
        1.0 + sum_error(2 * tall.size + 2 * columns**2)
    )
    identity = np.abs(rotation.T @ rotation - np.eye(columns)).sum(axis=1).max()
    skew = float(identity) * (1.0 + sum_error(columns)) + sum_error(columns + 2) * float(
        (np.abs(rotation.T) @ np.abs(rotation)).sum(axis=1).max() + 1.0
    ) * (1.0 + sum_error(2 * columns))
    gram, magnitude = np.abs(turned.T @ turned), np.abs(turned).T @ np.abs(turned)
    row_sums = (gram + 2.0 * sum_error(rows) * magnitude).sum(axis=1).max() * (
        1.0 + sum_error(columns + 4)
    )
    if not skew < 0.5:
        raise UnsupportedNorm(
            "singular vectors that are not orthogonal: this machine's linear algebra is not float64"
        )
    bound = (
        (math.sqrt(row_sums) + sum_error(columns) * frobenius)
        / math.sqrt(1.0 - skew)
        * (1.0 + 2.0**-45)
    )
    return math.ldexp(bound, exponent)
