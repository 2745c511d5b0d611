"""The worth of labels in cells, by a classifier's probabilities.

Counts of single rows in small cells are chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from reticent.core.arrays import Array
from reticent.grids.lattice import Lattice

_SPREAD = 0.25  # of the moves, in radii


def cell_weights(
    points: Array,
    posterior: Callable[[Array], Array],
    *,
    lattice: Lattice,
    seed: int,
    draws: int = 8,
) -> Array:
    """Return what each answer is worth in each cell, shape (labels, cells), summing to 1.

    It is the classifier's probabilities at the rows, moved at random by a quarter of a radius.

    Args:
        points: public rows, shape (n, d).
        posterior: probabilities of labels, shape (n, labels), at the rows where they are moved to.
        lattice: lattice of the cells.
        seed: seed of the moves.
        draws: moves of each row.
    """
    random = np.random.default_rng(seed)
    side = math.ldexp(lattice.side * lattice.reach, lattice.exponent)
    used, weights = list(lattice.coordinates), np.zeros((1, lattice.size))
    for _ in range(draws):
        moved = points.copy()
        moved[:, used] += _SPREAD * side * random.standard_normal((len(moved), len(used)))
        cells, chances = lattice.cells(moved), posterior(moved)
        weights = weights + np.stack([np.bincount(cells, part, lattice.size) for part in chances.T])
    return np.asarray(weights / weights.sum())


def cell_centres(points: Array, lattice: Lattice) -> Array:
    """Return a point in each cell.

    Coordinates that the lattice does not use, or does not divide, are at the median of ``points``.
    """
    found = np.tile(np.median(points, axis=0), (lattice.size, 1))
    for place, (coordinate, size) in enumerate(
        zip(lattice.coordinates, lattice.shape, strict=True)
    ):
        if size > 1:
            found[:, coordinate] = lattice.center[:, place]
    return found
