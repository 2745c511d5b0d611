"""Distances of public rows: nearest neighbours, nearest rows that differ, counts within a radius.

All are exact, in constant memory beside the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from reticent.core.arrays import Array, Integers
from reticent.core.norms import Norm

_TREE_COLUMNS = 12
"""Number of coordinates up to which trees are faster than comparing all rows."""

_ENTRIES = 2**23
"""Number of distances held at once."""

_POWERS = {Norm.L1: 1.0, Norm.L2: 2.0, Norm.LINF: np.inf}


@dataclass(frozen=True, eq=False)
class RowDistances:
    """Distances and counts for each of n rows.

    Attributes:
        first, nearest: distance to the nearest and the k-th nearest other row, shape (n,).
        within: number of other rows within each radius, shape (radii, n).
        other: for each column of values, the distance to the nearest row with another value, shape
            (n,). It is infinite if all rows have the same.
    """

    first: Array
    nearest: Array
    within: Integers
    other: dict[str, Array]


def row_distances(
    points: Array,
    norm: Norm,
    *,
    radii: Sequence[float],
    neighbour: int,
    columns: Mapping[str, Integers],
) -> RowDistances:
    """Return distances between the rows of ``points``.

    Args:
        points: finite points, shape (n, d), n above ``neighbour``.
        norm: norm of a distance.
        radii: radii, each above 0.
        neighbour: k, 1 for the nearest.
        columns: whole numbers, shape (n,) each. Rows with different ones are counterfactuals of
            each other.
    """
    if points.shape[1] <= _TREE_COLUMNS:
        return _by_tree(points, norm, radii=radii, neighbour=neighbour, columns=columns)
    return _by_blocks(points, norm, radii=radii, neighbour=neighbour, columns=columns)


def _by_tree(
    points: Array,
    norm: Norm,
    *,
    radii: Sequence[float],
    neighbour: int,
    columns: Mapping[str, Integers],
) -> RowDistances:
    power = _POWERS[norm]
    tree = cKDTree(points)
    first, nearest = np.asarray(tree.query(points, k=[2, neighbour + 1], p=power)[0]).T
    within = np.empty((len(radii), len(points)), dtype=np.int64)
    for index, radius in enumerate(radii):
        within[index] = tree.query_ball_point(points, radius, p=power, return_length=True) - 1
    other: dict[str, Array] = {}
    for name, values in columns.items():
        differing = np.full(len(points), np.inf)
        for value in np.unique(values):
            own = values == value
            if not own.all():
                differing[own] = cKDTree(points[~own]).query(points[own], p=power)[0]
        other[name] = differing
    return RowDistances(first, nearest, within, other)


def _by_blocks(
    points: Array,
    norm: Norm,
    *,
    radii: Sequence[float],
    neighbour: int,
    columns: Mapping[str, Integers],
) -> RowDistances:
    rows = len(points)
    first, nearest = np.empty(rows), np.empty(rows)
    within = np.empty((len(radii), rows), dtype=np.int64)
    other = {name: np.full(rows, np.inf) for name in columns}
    for block, apart in _blocks(points, norm):
        own = np.arange(block.start, block.stop)
        apart[own - block.start, own] = np.inf
        place = np.argpartition(apart, neighbour - 1, axis=1)[:, neighbour - 1]
        nearest[block] = norm.of(points[own] - points[place])
        first[block] = norm.of(points[own] - points[apart.argmin(axis=1)])
        for index, radius in enumerate(radii):
            within[index, block] = _count(points, own, apart, radius, norm)
        for name, values in columns.items():
            differs = values[own][:, None] != values
            place = np.where(differs, apart, np.inf).argmin(axis=1)
            exact = norm.of(points[own] - points[place])
            other[name][block] = np.where(differs.any(axis=1), exact, np.inf)
    return RowDistances(first, nearest, within, other)


def _blocks(points: Array, norm: Norm) -> Iterator[tuple[slice, Array]]:
    """Yield distances of some rows to all, a block of rows at a time, in l2 up to a small error."""
    step = max(1, _ENTRIES // len(points))
    centered = points - points.mean(axis=0)
    squares = np.square(centered).sum(axis=1)
    for start in range(0, len(points), step):
        block = slice(start, min(start + step, len(points)))
        if norm is Norm.L2:
            products = centered[block] @ centered.T
            apart = np.sqrt(np.maximum(squares[block, None] + squares - 2.0 * products, 0.0))
        else:
            apart = norm.between(points[block], points)
        yield block, apart


def _count(points: Array, own: Integers, apart: Array, radius: float, norm: Norm) -> Integers:
    """Return how many distances of a block are at most ``radius``.

    Distances that an error of the block could have moved across it are computed again, directly.
    """
    near = apart <= radius
    if norm is Norm.L2:
        scale = float(np.square(points - points.mean(axis=0)).sum(axis=1).max())
        doubt = np.abs(np.square(apart) - radius * radius) <= 1e-12 * (scale + radius * radius)
        first, second = np.nonzero(doubt)
        near[first, second] = norm.of(points[own[first]] - points[second]) <= radius
    return np.asarray(near.sum(axis=1), dtype=np.int64)
