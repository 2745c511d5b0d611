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


def block_sums(factors: Factors, clip: Clip) -> tuple[Array, Array]:
    """Sums over one block's records of lower and of upper ends of clipped gradients, exact whole numbers.

    Pairs that never reach gamma are summed by matrix products.

    Args:
        factors: of one layer, n at most ``RECORDS_AT_ONCE``.
        clip: of that layer.

    Returns:
        Two arrays of shape (rows, columns).
    """
    low, high, lower, upper = factors.row_low, factors.row_high, factors.column_low, factors.column_high
    clipped = largest_entries(factors) > clip.below
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
    for column in np.flatnonzero(clipped.any(axis=0)).tolist():
        rows: slice | Integers = slice(None) if clipped[:, column].all() else np.flatnonzero(clipped[:, column])
        sums[0][rows, column] = _entries(factors, clip, rows, column, upper=False).sum(axis=1)
        sums[1][rows, column] = _entries(factors, clip, rows, column, upper=True).sum(axis=1)
    return sums


def selected(factors: Factors, clip: Clip, rows: Integers, column: int, *, upper: bool) -> Array:
    """Upper ends of clipped gradients, or negated lower ends, of some rows and one column: (len(rows), n)."""
    entries = _entries(factors, clip, rows, column, upper=upper)
    return entries if upper else np.negative(entries, out=entries)


def largest_entries(factors: Factors) -> Array:
    """A number that no gradient of a row and column goes beyond in magnitude, clipped or not: (rows, columns)."""
    rows = np.maximum(-factors.row_low.min(axis=1, initial=0.0), factors.row_high.max(axis=1, initial=0.0))
    columns = np.maximum(-factors.column_low.min(axis=1, initial=0.0), factors.column_high.max(axis=1, initial=0.0))
    return np.asarray(rows[:, None] * columns)


def mean_bound(
    total: Integers, largest: Array, distances: Integers, records: int, clip: Clip, select: Select, *, replace: bool
) -> Array:
    """Upper bounds on the mean gradient of every batch at the given distances, in coarse units.

    With u_1 >= u_2 >= ... the upper ends of the b records' gradients, the bound at distance k is the maximum over
    j removed and l added records of (u_1 + ... + u_(b - j) + l gamma) / (b - j + l): over j + l = k, or with ``replace``
    at j = l = k. It is gamma once k reaches b.

    Args:
        total: sums of the upper ends, shape (rows, columns).
        largest: bound on |u|, shape (rows, columns).
        distances: k of each row's box, shape (rows,).
        records: b.
        clip: gamma.
        select: gives single records' upper ends where the sum alone does not decide.
        replace: which of the two.

    Returns:
        Shape (rows, columns).
    """
    gamma = clip.coarse
    bound = np.where(distances[:, None] > 0, gamma, 0.0) + np.zeros(total.shape)
    open_ = (distances < records)[:, None] & np.ones(total.shape, dtype=bool)
    if records == 0:
        return bound
    if replace:
        return _replaced(total, distances, records, clip, select, bound, open_)
    k = distances[:, None].astype(np.float64)
    sums = _up(total, clip.shift)
    np.copyto(bound, (sums + k * gamma) / (records + k), where=open_)
    # Removing j records in place of adding them helps only if their mean lies below 2 bound - gamma; two units of slack cover
    # the rounding of sums. So this shortcut skips maxima that are known, and never changes the result.
    smallest = np.floor(-np.minimum(largest, clip.above) / 2.0**clip.shift)
    unsettled = open_ & (k > 0) & (2.0 * bound > gamma + smallest - 2.0)
    for column in np.flatnonzero(unsettled.any(axis=0)).tolist():
        rows = np.flatnonzero(unsettled[:, column])
        most = int(distances[rows].max())
        removed = _smallest_sums(select(rows, column), most)
        j = np.arange(1, most + 1)
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
    of the rows gives the extreme product. gamma is rounded such that the result stays a bound.
    """
    low, high = factors.row_low[rows], factors.row_high[rows]
    values = (factors.column_high if upper else factors.column_low)[column]
    ends = (high, low) if upper else (low, high)
    if values.min(initial=0.0) >= 0:
        chosen = ends[0] * values
    else:
        chosen = np.where(values >= 0, *ends)
        chosen *= values
    limits = (-clip.below, clip.above) if upper else (-clip.above, clip.below)
    np.maximum(chosen, limits[0], out=chosen)
    return np.asarray(np.minimum(chosen, limits[1], out=chosen))
