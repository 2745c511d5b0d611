"""From a table that nearly keeps its constraints to whole shares that keep them exactly."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from reticent.core.checks import positive
from reticent.core.errors import InvalidInput
from reticent.grids.lattice import Lattice
from reticent.grids.shares import WHOLE, Shares, excess

Array = npt.NDArray[np.float64]

_LEAST = 1e-4  # probability of any label, or less where epsilon allows more
_ROUNDS = 40
_TIGHTER = 0.995  # of epsilon: what envelopes aim at, so that normalising leaves them below it
_PASSES = 60
_BISECTIONS = 12


def whole_table(probabilities: npt.ArrayLike, *, lattice: Lattice, epsilon: float) -> Shares:
    """Whole shares near ``probabilities`` that pass the exact check for ``epsilon``.

    Lower and upper envelopes are averaged (see ``repaired``), the result is rounded down to
    multiples of 2^-32, and what is left of each column goes to its largest entry. Should the exact
    check fail then, the table is mixed with the uniform one, with the least weight that a bisection
    finds to pass; weight 1 passes.

    Args:
        probabilities: shape (labels, cells), at least 0; columns are normalised.
        lattice: of the cells.
        epsilon: above 0.

    Returns:
        Shape (labels, cells), uint32, at least 1; columns sum to 2^32 exactly.

    Raises:
        InvalidInput: numbers that are negative or not finite.
    """
    table = repaired(probabilities, lattice=lattice, epsilon=epsilon)
    uniform = 1.0 / len(table)
    shares = _rounded(table)
    low, high = 0.0, 1.0
    if excess(shares, shares, lattice=lattice, epsilon=epsilon) == 0:
        return shares
    found = _rounded(np.full_like(table, uniform))
    for _ in range(_BISECTIONS):
        weight = 0.5 * (low + high) if low else 2.0**-10 * high
        shares = _rounded((1.0 - weight) * table + weight * uniform)
        if excess(shares, shares, lattice=lattice, epsilon=epsilon) == 0:
            high, found = weight, shares
        else:
            low = weight
    return found


def repaired(probabilities: npt.ArrayLike, *, lattice: Lattice, epsilon: float) -> Array:
    """A table near ``probabilities`` whose logarithms move by at most ``epsilon`` between touching
    cells, as far as floating point and a limited number of rounds go.

    The largest table below the given one that keeps the condition (min over c' of p(c') e^(epsilon
    hops)) and the smallest one above it are averaged, and columns normalised. Normalising breaks
    some pairs again, so this is repeated; each round starts closer.

    Args:
        probabilities: shape (labels, cells), at least 0, a positive sum in each column.
        lattice: of the cells.
        epsilon: above 0.
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
    labels = len(table)
    least = min(_LEAST, math.exp(-min(epsilon, 16.0)) / (10.0 * labels))
    # rounding down moves a share of at least `least` by a relative 1/(least 2^32)
    aim = epsilon - 4.0 / (least * WHOLE)
    table = np.maximum(table / table.sum(axis=0), least)
    table /= table.sum(axis=0)
    for _ in range(_ROUNDS):
        logs = np.log(table)
        if _largest_step(logs, lattice) <= aim:
            break
        below = np.stack([_below(row, lattice, _TIGHTER * aim) for row in logs])
        above = np.stack([-_below(-row, lattice, _TIGHTER * aim) for row in logs])
        table = np.exp(below) + np.exp(above)
        table /= table.sum(axis=0)
    return np.asarray(table)


def _below(logs: Array, lattice: Lattice, step: float) -> Array:
    """The largest function below ``logs`` that moves by at most ``step`` between touching cells."""
    for _ in range(_PASSES):
        lower = np.minimum(logs, step - lattice.touching_maximum(-logs))
        if np.array_equal(lower, logs):
            return logs
        logs = lower
    return logs


def _largest_step(logs: Array, lattice: Lattice) -> float:
    return max(float((lattice.touching_maximum(row) - row).max()) for row in logs)


def _rounded(table: Array) -> Shares:
    """Whole shares of 2^32, rounded down; the rest of each column goes to its largest entry."""
    whole = np.maximum(np.floor(table * WHOLE), 1).astype(np.int64)
    columns = np.arange(table.shape[1])
    largest = whole.argmax(axis=0)
    whole[largest, columns] += WHOLE - whole.sum(axis=0)
    if whole.min() < 1:
        raise InvalidInput("probabilities: columns do not sum to 1")
    return whole.astype(np.uint32)
