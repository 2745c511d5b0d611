"""The step from a table that nearly keeps its constraints to whole shares that keep them
exactly.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.checks import positive
from reticent.core.errors import InvalidInput
from reticent.grids.shares import WHOLE, Cells, Shares, excess

_ROUNDS = 60
_TIGHTER = 0.9995  # of epsilon: what envelopes aim at, so that normalising leaves them below it
_PASSES = 60
_BISECTIONS = 12
_TRIED = ((0.2, 1e-3), (0.2, 1e-5), (0.0, 1e-5))  # share of the lower envelope, least probability


def whole_table(
    probabilities: npt.ArrayLike,
    *,
    lattice: Cells,
    epsilon: float,
    weights: npt.ArrayLike | None = None,
) -> Shares:
    """Return whole shares near ``probabilities`` that pass the exact check for ``epsilon``.

    Lower and upper envelopes are averaged (``repaired``), the result is rounded down to multiples
    of 2^-32, and the rest of each column goes to its largest entry. Should the exact check fail
    then, the table is mixed with the uniform one, with the least weight that a bisection finds to
    pass. Weight 1 passes. With ``weights`` a few averages are tried, and the table that is worth
    most is kept.

    Args:
        probabilities: shape (labels, cells), at least 0. Columns are normalised.
        lattice: the lattice of the cells.
        epsilon: above 0.
        weights: worth of each answer in each cell, shape (labels, cells), public. None takes the
            first average.

    Returns:
        Shape (labels, cells), uint32, at least 1. Columns sum to 2^32 exactly.

    Raises:
        InvalidInput: numbers are negative or not finite.
    """
    tried = _TRIED if weights is not None else _TRIED[:1]
    tables = [
        _exact(
            repaired(probabilities, lattice=lattice, epsilon=epsilon, lower=lower, least=least),
            lattice,
            epsilon,
        )
        for lower, least in tried
    ]
    if weights is None:
        return tables[0]
    worth = np.asarray(weights, dtype=np.float64)
    return max(tables, key=lambda shares: float((worth * shares).sum()))


def _exact(table: Array, lattice: Cells, epsilon: float) -> Shares:
    """Return ``table`` in whole shares, mixed with the uniform table as little as the check
    demands.
    """
    uniform = 1.0 / len(table)
    shares = _rounded(table)
    if excess(shares, shares, lattice=lattice, epsilon=epsilon) == 0:
        return shares
    found = _rounded(np.full_like(table, uniform))
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        weight = 0.5 * (low + high) if low else 2.0**-8 * high
        shares = _rounded((1.0 - weight) * table + weight * uniform)
        if excess(shares, shares, lattice=lattice, epsilon=epsilon) == 0:
            high, found = weight, shares
        else:
            low = weight
    return found


def repaired(
    probabilities: npt.ArrayLike,
    *,
    lattice: Cells,
    epsilon: float,
    lower: float = 0.2,
    least: float = 1e-4,
) -> Array:
    """Return a table near ``probabilities`` whose logarithms move by at most ``epsilon`` between
    touching cells, as far as floating point and a limited number of rounds go.

    The largest table below the given one that keeps the condition (min over c' of p(c') e^(epsilon
    distance)) and the smallest one above it are averaged, and columns normalised. Normalising
    breaks some pairs again, so this is repeated. Each round starts closer.

    Args:
        probabilities: shape (labels, cells), at least 0, a positive sum in each column.
        lattice: the lattice of the cells.
        epsilon: above 0.
        lower: share of the lower envelope in the average, 0 to 1.
        least: probability that labels start from, less where epsilon allows more.
    """
    positive(epsilon, name="epsilon")
    table = np.asarray(probabilities, dtype=np.float64)
    if (
        table.ndim != 2
        or table.shape[1] != lattice.size
        or not bool(np.isfinite(table).all() and (table >= 0).all())
    ):
        raise InvalidInput(
            f"probabilities: expected finite numbers of at least 0, of shape (labels, "
            f"{lattice.size}), got shape={table.shape}"
        )
    start = min(least, math.exp(-min(epsilon, 16.0)) / (10.0 * len(table)))
    # rounding down moves a share of at least `start` by a relative 1/(start 2^32)
    aim = epsilon - min(4.0 / (start * WHOLE), 0.5 * epsilon)
    table = np.maximum(table / table.sum(axis=0), start)
    table /= table.sum(axis=0)
    for _ in range(_ROUNDS):
        logs = np.log(table)
        if _largest_step(logs, lattice) <= aim:
            break
        below = [_below(row, lattice, _TIGHTER * aim) if lower else row for row in logs]
        above = [-_below(-row, lattice, _TIGHTER * aim) for row in logs]
        table = lower * np.exp(np.stack(below)) + (1.0 - lower) * np.exp(np.stack(above))
        table /= table.sum(axis=0)
    return np.asarray(table)


def _below(logs: Array, lattice: Cells, step: float) -> Array:
    """Return the largest function below ``logs`` that moves by at most ``step`` between touching
    cells.
    """
    for _ in range(_PASSES):
        lower = np.minimum(logs, step - lattice.touching_maximum(-logs))
        if np.array_equal(lower, logs):
            return logs
        logs = lower
    return logs


def _largest_step(logs: Array, lattice: Cells) -> float:
    return max(float((lattice.touching_maximum(row) - row).max()) for row in logs)


def _rounded(table: Array) -> Shares:
    """Return whole shares of 2^32, rounded down. The rest of each column goes to its largest
    entry.
    """
    whole = np.maximum(np.floor(table * WHOLE), 1).astype(np.int64)
    columns = np.arange(table.shape[1])
    largest = whole.argmax(axis=0)
    whole[largest, columns] += WHOLE - whole.sum(axis=0)
    if whole.min() < 1:
        raise InvalidInput("probabilities: columns do not sum to 1")
    return np.asarray(whole.astype(np.uint32))
