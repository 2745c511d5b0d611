"""Answers for rows that do not depend on any other row, to the last bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reticent.core.arrays import Array
from reticent.core.checks import finite_sum

_ALIGNMENT = 64  # bytes; of a cache line and of the widest vector registers


def each_row(compute: Callable[[Array], Array], rows: Array) -> Array:
    """Return the result of ``compute`` for every row by itself, one call per row.

    A matrix product or a convolution may add in an order that depends on the number of rows and on
    a row's place among them. So a library's result for a row of a batch can differ in its last bits
    from that for the row alone. Some libraries also choose by the address of their operands, so
    every row is first copied to one and the same aligned buffer.

    Args:
        compute: function from (1, d) to (1, m), with the same m for every row. It may not keep or
            change its argument.
        rows: shape (n, d). For no rows m is found from a row of zeros.

    Returns:
        Shape (n, m), float64.

    Example:
        >>> each_row(lambda row: row @ np.ones((2, 1)), np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
        [[3.0], [7.0]]
    """
    buffer = _aligned(rows.shape[1])
    first = _of(compute, buffer, rows[0] if len(rows) else np.zeros(rows.shape[1]))
    result = np.empty((len(rows), len(first)))
    result[:1] = first
    for place in range(1, len(rows)):
        result[place] = _of(compute, buffer, rows[place])
    return result


def in_blocks(compute: Callable[[Array], Array], rows: Array, *, block: int = 64) -> Array:
    """Return the result of ``compute`` for every row, in blocks of one fixed shape.

    The last block is filled up with zeros. So the size of one computation follows from ``block``
    alone, never from the number of private records.

    Args:
        compute: function from (block, d) to (block, m).
        rows: shape (n, d).
        block: number of rows at once, at least 1.

    Returns:
        Shape (n, m), float64. For no rows m is found from zeros.

    Example:
        >>> in_blocks(lambda rows: rows @ np.ones((2, 1)), np.ones((3, 2)), block=2).tolist()
        [[2.0], [2.0], [2.0]]
    """
    found = []
    for start in range(0, max(1, len(rows)), block):
        # bit-exact: every call gets the same shape, whatever the number of rows.
        part = np.zeros((block, rows.shape[1]))
        given = rows[start : start + block]
        part[: len(given)] = given
        found.append(compute(part)[: len(given)])
    return np.concatenate(found)


def finite_or_zero(rows: Array) -> Array:
    """Return ``rows``, or a copy with every row that holds NaN or infinity replaced by zeros, a
    fixed public point.

    Example:
        >>> finite_or_zero(np.array([[1.0, np.inf], [2.0, 3.0]])).tolist()
        [[0.0, 0.0], [2.0, 3.0]]
    """
    if finite_sum(rows):
        return rows
    finite = np.isfinite(rows).all(axis=1, keepdims=True)
    return rows if finite.all() else np.where(finite, rows, 0.0)


def _of(compute: Callable[[Array], Array], buffer: Array, row: Array) -> Array:
    buffer[0] = row
    return np.asarray(compute(buffer)[0])


def _aligned(width: int) -> Array:
    """Return an array of shape (1, width) that starts at a multiple of the alignment."""
    raw = np.empty(8 * width + _ALIGNMENT, dtype=np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    return raw[start : start + 8 * width].view(np.float64).reshape(1, width)
