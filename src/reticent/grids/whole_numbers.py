"""Arithmetic that gives a record the same whole numbers alone and in any batch.

A matrix product of doubles adds in an order that depends on the batch, so its last bit can move
with *other* records. Here every product and partial sum is a whole number below 2^53, which a
double holds exactly, so the order cannot matter. Other operations (division, square root, the
exponential) are done entry by entry with operations that IEEE 754 rounds correctly.
"""

from __future__ import annotations

import math

import numpy as np

from reticent.core.arrays import Array
from reticent.core.errors import InvalidParameter

EXACT = 2.0**53
"""Whole numbers up to this one are doubles."""

_MARGIN = 1.0 - 2.0**-40

_LOG2_E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_DEGREE = 13
_ARTANH_TERMS = 12
_SMALLEST = -700.0
_FEW = 16


def exact_product(left: Array, right: Array, *, bound: float) -> Array:
    """Return the exact matrix product of whole numbers.

    Args:
        left: shape (n, m), whole numbers.
        right: shape (m, k), whole numbers.
        bound: bound on the magnitude of every partial sum, from public numbers, for instance the
            longest row times the longest column, by Cauchy and Schwarz.

    Raises:
        InvalidParameter: ``bound`` is beyond 2^52.

    Example:
        >>> exact_product(np.array([[2.0, 3.0]]), np.array([[1.0], [-1.0]]), bound=8.0).tolist()
        [[-1.0]]
    """
    if not bound <= EXACT / 2:
        raise InvalidParameter(
            f"values: too large or too many for exact sums, which may reach {bound:.3g}; expected "
            "at most 2**52"
        )
    # bit-exact: every partial sum is a whole number below 2^53, so the order of the sums cannot
    # matter.
    return np.asarray(left @ right)


def lengths(rows: Array) -> Array:
    """Return a bound on the l2 norm of each row of whole numbers, equal to it to about a
    thousandth. It depends on that row alone, to the last bit.

    Args:
        rows: shape (n, m), whole numbers below 2^53.

    Returns:
        Shape (n,). Where m times the square of the largest entry is below 2^53, the norm itself,
        correctly rounded.

    Example:
        >>> lengths(np.array([[3.0, -4.0]])).tolist()
        [5.0]
    """
    if not rows.shape[1]:
        return np.zeros(len(rows))
    coarse = np.abs(rows)
    largest = _largest(coarse)
    room = (53 - math.ceil(math.log2(max(rows.shape[1], 1)))) // 2
    shift = np.maximum(np.frexp(largest)[1] - room, 0)
    # bit-exact: a power of two scales without rounding, and squares of so few bits add up without
    # rounding, in any order.
    coarse *= np.ldexp(1.0, -shift)[:, None]
    np.ceil(coarse, out=coarse)
    return np.asarray(np.ldexp(np.sqrt(np.einsum("ij,ij->i", coarse, coarse)), shift))


def clipped(rows: Array, bound: float) -> Array:
    """Return whole numbers of an l2 norm of at most ``bound``, each row from that row alone. Rows
    that ``lengths`` finds within it stay as they are.

    A longer row is multiplied by bound / length and cut towards 0, which only shortens it.

    Args:
        rows: shape (n, m), whole numbers.
        bound: above 0.

    Example:
        >>> clipped(np.array([[30.0, 40.0], [3.0, 4.0]]), 10.0).tolist()
        [[5.0, 7.0], [3.0, 4.0]]
    """
    norms = lengths(rows)
    long = np.flatnonzero(norms > bound)
    found = rows.copy()
    found[long] = np.trunc(rows[long] * (_MARGIN * bound / np.maximum(norms[long], 1.0))[:, None])
    return found


def of_length(rows: Array, length: float) -> Array:
    """Return rows of whole numbers in the direction of ``rows``, of an l2 norm of at most
    ``length`` and within sqrt(m) of it. Rows of zeros stay so.

    Args:
        rows: shape (n, m), whole numbers.
        length: above 0.
    """
    factors = _MARGIN * length / np.maximum(lengths(rows), 1.0)
    return np.asarray(np.trunc(rows * factors[:, None]))


def exponential(values: Array) -> Array:
    """Return exp of numbers of at most 0, entry by entry, to a relative 1e-15.

    numpy's own may round an entry differently where it stands elsewhere in an array. Additions and
    multiplications do not.
    """
    capped = np.maximum(values, _SMALLEST)
    powers = np.rint(capped * _LOG2_E)
    rest = (capped - powers * _LN2_HIGH) - powers * _LN2_LOW
    # bit-exact: Horner's rule in this order, with no fused operation and no call of a library.
    total = np.full_like(rest, 1.0 / math.factorial(_DEGREE))
    for power in range(_DEGREE - 1, -1, -1):
        total *= rest
        total += 1.0 / math.factorial(power)
    return np.asarray(np.ldexp(total, powers.astype(np.int64)))


def logarithm(values: Array) -> Array:
    """Return natural logarithms of positive numbers, entry by entry, to a relative 1e-14.

    As with ``exponential``, an entry has the same value wherever it stands in an array.

    Args:
        values: any shape, finite, normal and above 0.

    Example:
        >>> round(float(logarithm(np.array([10.0]))[0]), 12)
        2.302585092994
    """
    parts, powers = np.frexp(values)
    low = parts < math.sqrt(0.5)
    parts, powers = np.where(low, 2.0 * parts, parts), powers - low
    # bit-exact: log m = 2 artanh((m - 1) / (m + 1)), by Horner's rule in this order.
    ratio = (parts - 1.0) / (parts + 1.0)
    square = ratio * ratio
    total = np.full_like(ratio, 1.0 / (2 * _ARTANH_TERMS + 1))
    for term in range(_ARTANH_TERMS - 1, -1, -1):
        total *= square
        total += 1.0 / (2 * term + 1)
    return np.asarray(powers * _LN2_HIGH + (2.0 * ratio * total + powers * _LN2_LOW))


def softmax(logits: Array) -> Array:
    """Return the shares of each row, summed class by class, so that a row has the same shares
    alone.

    Args:
        logits: shape (n, classes), finite.

    Example:
        >>> softmax(np.zeros((1, 2))).tolist()
        [[0.5, 0.5]]
    """
    weights = exponential(logits - _largest(logits)[:, None])
    # bit-exact: classes in their order. A sum along an axis takes another order for other shapes.
    total = np.zeros(len(weights))
    for column in weights.T:
        total += column
    return np.asarray(weights / total[:, None])


def _largest(rows: Array) -> Array:
    """Return the largest entry of each row. Over few columns numpy is slow along them."""
    if rows.shape[1] > _FEW:
        return np.asarray(rows.max(axis=1))
    largest = rows[:, 0].copy()
    for column in rows.T[1:]:
        np.maximum(largest, column, out=largest)
    return largest
