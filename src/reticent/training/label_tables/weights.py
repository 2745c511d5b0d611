"""The lattice that public rows call for, and the worth of labels in its cells by a classifier's
probabilities.

Counts of single rows in small cells are chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from reticent.core.arrays import Array, Integers
from reticent.grids.lattice import Lattice, cells_along

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


def chosen_lattice(
    points: Array,
    ratings: Array,
    *,
    radius: float,
    tail: float,
    fits: Callable[[Sequence[int]], bool],
) -> Lattice:
    """Return cells as small as the radius allows, over coordinates that are rated highest.

    They are as many as leave the lattice small enough. A coordinate whose rows fit into one cell
    costs nothing and is left out. Leaving coordinates out is 1-Lipschitz, so neighbours stay
    neighbours.

    Args:
        points: public rows, shape (n, d).
        ratings: shape (d,), the larger the better.
        radius: radius of neighbours.
        tail: share of the rows beyond the cells' own ends, on either side of a coordinate.
        fits: says whether a lattice of so many cells along each coordinate may be used. It is asked
            before the lattice is made, since one of very many cells cannot be.
    """
    along = cells_along(points, radius=radius, tail=tail)
    used: tuple[int, ...] = ()
    for place in np.argsort(-ratings, kind="stable").tolist():
        wider = tuple(sorted((*used, place)))
        if not used or (along[place] > 1 and fits([along[other] for other in wider])):
            used = wider
    return Lattice.over(points, radius=radius, tail=tail, coordinates=used)


def correlation_ratio(points: Array, labels: Integers) -> Array:
    """Return the share of each coordinate's variance that lies between labels, shape (d,)."""
    centred = points - points.mean(axis=0)
    counts = np.bincount(labels)
    between = np.zeros(points.shape[1])
    for label in np.flatnonzero(counts):
        between += counts[label] * centred[labels == label].mean(axis=0) ** 2
    total = np.sum(centred**2, axis=0)
    return np.asarray(np.divide(between, total, out=np.zeros_like(total), where=total > 0))
