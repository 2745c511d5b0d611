"""Bounds on the mean of clipped gradients over every batch that k changes of records can make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reticent.certify.training_network import Factors

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Select = Callable[[Integers, int], Array]
"""Upper ends of the whole batch's gradients of some rows and one column: (rows, column) -> (rows, n)."""


@dataclass(frozen=True)
class Clip:
    """gamma in units of a layer's gradient.

    Attributes:
        below, above: gamma rounded down and up to whole units.
        shift: bits by which sums are coarsened.
    """

    below: float
    above: float
    shift: int

    @property
    def coarse(self) -> float:
        """An added record's largest gradient, in coarse units."""
        return float(_up(np.int64(self.above), self.shift))


@dataclass(frozen=True, eq=False)
class BlockSums:
    """What one block's records add up to, for every row and column; upper ends, or negated lower ends.

    Attributes:
        total: sums of clipped ends, exact whole numbers.
        floored: a number of records, at least, whose end is gamma's negative; 0 where none was looked at.
    """

    total: Integers
    floored: Integers

    def plus(self, other: BlockSums) -> BlockSums:
        """Both blocks together."""
        return BlockSums(self.total + other.total, self.floored + other.floored)


def block_sums(factors: Factors, clip: Clip) -> tuple[BlockSums, BlockSums]:
    """Sums over one block's records of negated lower ends, and of upper ends, of clipped gradients.

    Pairs that never reach gamma are summed by matrix products.

    Args:
        factors: of one layer, n at most ``RECORDS_AT_ONCE``.
        clip: of that layer.

    Returns:
        Two sums for rows and columns.
    """
    low, high, lower, upper = factors.row_low, factors.row_high, factors.column_low, factors.column_high
    clipped = factors.largest > clip.below
    if clipped.all():
        sums = np.empty(clipped.shape), np.empty(clipped.shape)
    elif lower is upper:
        spread = (high - low) @ np.abs(upper).T
        center = (low + high) @ upper.T
        sums = 0.5 * (center - spread), 0.5 * (center + spread)
    else:
        sums = (
            low @ np.maximum(lower, 0.0).T + high @ np.minimum(lower, 0.0).T,
            high @ np.maximum(upper, 0.0).T + low @ np.minimum(upper, 0.0).T,
        )
    floored = np.zeros(clipped.shape, np.int64), np.zeros(clipped.shape, np.int64)
    columns = np.flatnonzero(clipped.any(axis=0)).tolist()
    if lower is upper and columns:
        # Midpoint and radius once for all columns: both ends of a column are then a sum and a difference of two products.
        center, radius = 0.5 * (low + high), 0.5 * (high - low)
    for column in columns:
        rows: slice | Integers = slice(None) if clipped[:, column].all() else np.flatnonzero(clipped[:, column])
        if lower is upper:
            middle, reach = center[rows] * upper[column], radius[rows] * np.abs(upper[column])
            ends = middle - reach, np.add(middle, reach, out=middle)
            entries = [_clipped(end, clip, upper=side == 1) for side, end in enumerate(ends)]
        else:
            entries = [_entries(factors, clip, rows, column, upper=side) for side in (False, True)]
        for side, part in enumerate(entries):
            sums[side][rows, column] = part.sum(axis=1)
            floored[side][rows, column] = np.count_nonzero(part == (clip.below, -clip.below)[side], axis=1)
    return BlockSums(-sums[0].astype(np.int64), floored[0]), BlockSums(sums[1].astype(np.int64), floored[1])


def selected(factors: Factors, clip: Clip, rows: Integers, column: int, *, upper: bool) -> Array:
    """Upper ends of clipped gradients, or negated lower ends, of some rows and one column: (len(rows), n)."""
    entries = _entries(factors, clip, rows, column, upper=upper)
    return entries if upper else np.negative(entries, out=entries)


def mean_bound(
    sums: BlockSums, largest: Array, distances: Integers, records: int, clip: Clip, select: Select, *, replace: bool
) -> Array:
    """Upper bounds on the mean gradient of every batch at the given distances, in coarse units.

    With u_1 >= u_2 >= ... the upper ends of the b records' gradients, the bound at distance k is the maximum over
    j removed and l added records of (u_1 + ... + u_(b - j) + l gamma) / (b - j + l): over j + l = k, or with ``replace``
    at j = l = k. It is gamma once k reaches b.

    Args:
        sums: of the upper ends of the whole batch.
        largest: bound on |u|, shape (rows, columns).
        distances: k of each row's box, shape (rows,).
        records: b.
        clip: gamma.
        select: gives single records' upper ends where the sum alone does not decide.
        replace: which of the two.

    Returns:
        Shape (rows, columns).
    """
    gamma, total = clip.coarse, sums.total
    bound = np.where(distances[:, None] > 0, gamma, 0.0) + np.zeros(total.shape)
    open_ = (distances < records)[:, None] & np.ones(total.shape, dtype=bool)
    if records == 0:
        return bound
    if replace:
        return _replaced(total, distances, records, clip, select, bound, open_)
    k = distances[:, None].astype(np.float64)
    np.copyto(bound, (_up(total, clip.shift) + k * gamma) / (records + k), where=open_)
    # Removing j records in place of adding them helps only if their mean lies below 2 bound - gamma; two units of slack cover
    # the rounding of sums. So this shortcut skips maxima that are known, and never changes the result.
    smallest = np.floor(-np.minimum(largest, clip.above) / 2.0**clip.shift)
    unsettled = open_ & (k > 0) & (2.0 * bound > gamma + smallest - 2.0)
    for column in np.flatnonzero(unsettled.any(axis=0)).tolist():
        # Where k records or more are at the least possible end, the k smallest are known without looking for them.
        known = unsettled[:, column] & (sums.floored[:, column] >= distances)
        for rows in (np.flatnonzero(known), np.flatnonzero(unsettled[:, column] & ~known)):
            if not len(rows):
                continue
            j = np.arange(1, int(distances[rows].max()) + 1)
            removed = j * -int(clip.below) if known[rows[0]] else _smallest_sums(select(rows, column), len(j))
            left = _up(total[rows, column][:, None] - removed, clip.shift)
            size = records + k[rows] - 2.0 * j
            possible = j <= distances[rows][:, None]
            with np.errstate(divide="ignore", invalid="ignore"):
                means = np.where(possible, (left + (k[rows] - j) * gamma) / size, -np.inf)
            bound[rows, column] = np.maximum(bound[rows, column], means.max(axis=1))
    return bound


def _replaced(
    total: Integers, distances: Integers, records: int, clip: Clip, select: Select, bound: Array, open_: npt.NDArray[np.bool_]
) -> Array:
    """k removed and k added. Every record's entry is coarsened by itself, so that all sums of entries are exact."""
    rows = np.flatnonzero(open_[:, 0])
    if not len(rows):
        return bound
    most = int(distances[rows].max())
    for column in range(total.shape[1]):
        entries = _up(select(rows, column).astype(np.int64), clip.shift)
        sums = entries.sum(axis=1)
        if most:
            removed = np.concatenate([np.zeros((len(rows), 1)), _smallest_sums(entries, most)], axis=1)
            sums -= removed[np.arange(len(rows)), distances[rows]]
        bound[rows, column] = (sums + distances[rows] * clip.coarse) / records
    return bound


def _smallest_sums(values: Array, most: int) -> Integers:
    """Sums of the 1, 2, ..., ``most`` smallest values of each row; exact."""
    smallest = np.partition(values, most - 1, axis=1)[:, :most] if most < values.shape[1] else values
    return np.cumsum(np.sort(smallest, axis=1).astype(np.int64), axis=1)


def _up(values: Integers | np.int64, shift: int) -> Array:
    """Whole numbers divided by 2**shift and rounded up, as float64."""
    return np.asarray(-((-values) >> shift), dtype=np.float64)


def _entries(factors: Factors, clip: Clip, rows: slice | Integers, column: int, *, upper: bool) -> Array:
    """Clipped upper (lower) ends of the gradients of rows and one column: (rows, n).

    Either the column is known exactly or the rows are non-negative: in both cases the column's end and its sign say which end
    of the rows gives the extreme product.
    """
    low, high = factors.row_low[rows], factors.row_high[rows]
    values = (factors.column_high if upper else factors.column_low)[column]
    ends = (high, low) if upper else (low, high)
    if values.min(initial=0.0) >= 0:
        chosen = ends[0] * values
    else:
        chosen = np.where(values >= 0, *ends)
        chosen *= values
    return _clipped(chosen, clip, upper=upper)


def _clipped(values: Array, clip: Clip, *, upper: bool) -> Array:
    """Upper (lower) ends cut to gamma in place; gamma is rounded such that they stay bounds."""
    limits = (-clip.below, clip.above) if upper else (-clip.above, clip.below)
    return np.asarray(np.clip(values, *limits, out=values))
