"""Bounds on the mean of clipped gradients over every batch that k changes of records can make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Integers
from reticent.retraining.training_network import Factors
from reticent.retraining.training_settings import Counting


@dataclass(frozen=True)
class Clip:
    """The clip bound gamma in units of a layer's gradient.

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

    def cut(self, ends: Array, share: Array | None) -> Array:
        """Clip ends, shape (rows, n), in place: to gamma, or to each record's share of it."""
        if share is None:
            return np.asarray(np.clip(ends, -self.below, self.above, out=ends))
        below, above = np.floor(share * self.below), np.ceil(share * self.above)
        return np.asarray(np.clip(ends, -below, above, out=ends))


def constant_entries(
    factors: Factors, clip: Clip
) -> tuple[npt.NDArray[np.bool_], Integers, Integers]:
    """Return which records' clipped entries are one number over a whole box, and so over every box
    inside, and their sums.

    Args:
        factors: factors of a linear model's box, n at most ``RECORDS_AT_ONCE``.
        clip: gamma.

    Returns:
        Whether that column's entries are, in every row, shape (columns, n). Then the sums of
        negated lower ends, and of upper ends, of those alone, shape (1, rows, columns).
    """
    inputs = factors.column_low
    most = clip.above if factors.share is None else np.ceil(factors.share * clip.above)
    constant = np.ones(inputs.shape, dtype=bool)
    for low, high in zip(factors.row_low, factors.row_high, strict=True):
        one, other = low * inputs, high * inputs
        clipped = (np.minimum(one, other) >= most) | (np.maximum(one, other) <= -most)
        constant &= clipped | (one == other)
    negated, upper = (
        np.array(
            [
                (clip.cut(sign * low * inputs, factors.share) * constant).sum(axis=1)
                for low in factors.row_low
            ]
        ).astype(np.int64)[None]
        for sign in (-1.0, 1.0)
    )
    return constant, negated, upper


class Entries(NamedTuple):
    """Some entries of one column of gradients of shape (rows, n), row after row.

    Attributes:
        places: places in the flat array.
        records: the record of each.
    """

    places: Integers
    records: Integers

    @classmethod
    def where(cls, chosen: npt.NDArray[np.bool_]) -> Entries:
        """Return the chosen entries, ``chosen`` of shape (rows, n)."""
        places = np.flatnonzero(chosen)
        return cls(places, places % max(chosen.shape[1], 1))

    def of(self, factors: Factors, column: int, rows: int) -> Factors:
        """Return these entries of every box, which has ``rows`` rows: boxes become rows, entries
        records.
        """
        boxes = len(factors.row_low) // rows
        low, high = (
            np.take(ends.reshape(boxes, -1), self.places, axis=1)
            for ends in (factors.row_low, factors.row_high)
        )
        lower = factors.column_low[column, self.records][None]
        exact = factors.column_low is factors.column_high
        upper = lower if exact else factors.column_high[column, self.records][None]
        share = None if factors.share is None else factors.share[self.records]
        return Factors(low, high, lower, upper, share)


def clipped_entries(factors: Factors, clip: Clip) -> list[Entries | None]:
    """Return the entries of each column that gamma may clip somewhere in a box, None for more than
    half.
    """
    gamma = clip.below if factors.share is None else np.floor(factors.share * clip.below)
    size = np.maximum(-factors.row_low, factors.row_high)
    columns = np.maximum(-factors.column_low, factors.column_high)
    found = (Entries.where(size * column > gamma) for column in columns)
    return [entries if 2 * len(entries.places) <= size.size else None for entries in found]


def block_sums(
    factors: Factors, clip: Clip, entries: list[Entries | None], rows: int
) -> tuple[Integers, Integers]:
    """Return one block's sums of negated lower ends, and of upper ends, of clipped gradients.

    They are those of a matrix product, less what gamma takes off the entries that it may clip.

    Args:
        factors: factors of one layer, n at most ``RECORDS_AT_ONCE``, of one box or of several.
        clip: clip of that layer.
        entries: ``clipped_entries`` of a box around all of them.
        rows: rows of one box.

    Returns:
        Exact whole numbers, of shape (boxes, rows, columns) each.
    """
    # bit-exact: ends are whole numbers, and a block so small that their sums are too.
    boxes, n = len(factors.row_low) // rows, factors.row_low.shape[1]
    dense = all(listed is None for listed in entries)
    sums = (
        np.empty((2, boxes * rows, len(entries))) if dense else np.stack(_unclipped_sums(factors))
    ).reshape(2, boxes, rows, len(entries))
    ones = np.ones(n)
    for column, listed in enumerate(entries):
        if listed is None:
            for side, ends in zip(sums, _both_ends(factors, column), strict=True):
                side[..., column] = (clip.cut(ends, factors.share) @ ones).reshape(boxes, rows)
        elif len(listed.places):
            some = listed.of(factors, column, rows)
            row = listed.places // n
            starts = np.flatnonzero(np.diff(row, prepend=-1))
            for side, ends in zip(sums, _both_ends(some, 0), strict=True):
                taken = ends.copy()
                taken -= clip.cut(ends, some.share)
                side[:, row[starts], column] -= np.add.reduceat(taken, starts, axis=1)
    negated, upper = sums.astype(np.int64)
    return negated, upper


def _unclipped_sums(factors: Factors) -> tuple[Array, Array]:
    """Return one block's sums of negated lower ends, and of upper ends, if none reaches gamma."""
    low, high, lower, upper = (
        factors.row_low,
        factors.row_high,
        factors.column_low,
        factors.column_high,
    )
    if lower is upper:
        # Twice the midpoints and twice the radii.
        middle, reach = (low + high) @ upper.T, (high - low) @ np.abs(upper).T
        return 0.5 * (reach - middle), 0.5 * (reach + middle)
    least = low @ np.maximum(lower, 0.0).T + high @ np.minimum(lower, 0.0).T
    return -least, high @ np.maximum(upper, 0.0).T + low @ np.minimum(upper, 0.0).T


def _both_ends(factors: Factors, column: int) -> tuple[Array, Array]:
    """Return negated lower ends, and upper ends, of the gradients of one column.

    They are not clipped, and of shape (rows, n) each.
    """
    return _end(factors, column, upper=False), _end(factors, column, upper=True)


def _end(factors: Factors, column: int, *, upper: bool) -> Array:
    """Return one of both ends, as ``_both_ends`` does."""
    values = factors.column_high[column] if upper else -factors.column_low[column]
    # Either the column is known exactly or the rows are non-negative: the larger product is the
    # upper end.
    ends = factors.row_high * values
    if values.min(initial=0.0) < 0:
        np.maximum(ends, factors.row_low * values, out=ends)
    return ends


class SmallEnds(NamedTuple):
    """Where the smallest ends of one column are.

    Attributes:
        rows: rows that have any.
        shape: their number, and the largest number of places in one.
        parts: for each block of records the places, and where each goes in an array of ``shape``.
    """

    rows: Integers
    shape: tuple[int, int]
    parts: list[tuple[Entries, Integers]]

    @classmethod
    def of(
        cls, listed: npt.NDArray[np.bool_], rows: Integers, parts: Sequence[Factors]
    ) -> SmallEnds:
        """Return the places listed, ``listed`` of shape (rows, records)."""
        numbers = np.cumsum(listed, axis=1)
        most, start, places = int(numbers[:, -1].max(initial=0)), 0, []
        for part in parts:
            n = part.row_low.shape[1]
            row, record = np.nonzero(listed[:, start : start + n])
            position = row * most + numbers[row, start + record] - 1
            places.append((Entries(rows[row] * n + record, record), position))
            start += n
        return cls(rows, (len(rows), most), places)


@dataclass(frozen=True, eq=False)
class RecordEnds:
    """The upper, or negated lower, ends of clipped gradients of one layer over a whole batch.

    Attributes:
        parts: factors of every block of records, box after box. A block may have one box, which
            stands for all.
        total: sums over the batch, exact, shape (boxes, rows, columns).
        clip: gamma.
        upper: whether the ends are the upper ones.
    """

    parts: Sequence[Factors]
    total: Integers
    clip: Clip
    upper: bool

    @property
    def records(self) -> int:
        """The number of records."""
        return sum(part.row_low.shape[1] for part in self.parts)

    def box(self, place: int) -> RecordEnds:
        """Return the ends over the first box (0) or the last (-1)."""
        parts = [part.box(place, self.total.shape[1]) for part in self.parts]
        return replace(self, parts=parts, total=self.total[[place]])

    def of(self, column: int) -> Array:
        """Return every record's end for one column, shape (boxes rows, records)."""
        return np.concatenate(
            [
                self.clip.cut(_end(part, column, upper=self.upper), part.share)
                for part in self.parts
            ],
            axis=1,
        )

    def at(self, places: SmallEnds, column: int) -> Array:
        """Return the ends at some places in increasing order, shape (boxes, rows, most).

        They are infinite where a row has fewer places.
        """
        rows, most = places.shape
        boxes = self.total.shape[0]
        found = np.full((boxes, rows * most), np.inf)
        for part, (entries, position) in zip(self.parts, places.parts, strict=True):
            some = entries.of(part, column, self.total.shape[1])
            ends = _end(some, 0, upper=self.upper)
            found[:, position] = self.clip.cut(ends, some.share)
        return np.sort(found.reshape(boxes, rows, most), axis=2)


@dataclass(frozen=True, eq=False)
class Removable:
    """Which records are worth removing at any of several distances, whose boxes are nested.

    Attributes:
        all_least: whether the records removed are known to be at the least possible end, and as
            many as possible are best, shape (rows, columns).
        columns: where the smallest ends of the other rows are, None where no row has any.
    """

    all_least: npt.NDArray[np.bool_]
    columns: list[SmallEnds | None]

    @classmethod
    def of(
        cls, first: RecordEnds, last: RecordEnds, distances: Integers, *, counting: Counting
    ) -> Removable:
        """Return what the ends over the smallest and over the largest box tell about all.

        Ends grow with the box. So at each distance the k smallest are among k records that are the
        smallest over the largest box, and those that lie below all these over the smallest.

        Args:
            first, last: ends over the smallest box, and over the largest, one box each.
            distances: the distances, increasing.
            counting: as for ``mean_bound``.
        """
        clip, records = last.clip, last.records
        rows, columns = last.total.shape[1:]
        found = cls(np.zeros((rows, columns), dtype=bool), [None] * columns)
        k = int(distances[-1])
        most = min(k, records)
        if most == 0 or counting == "insert":
            return found
        limit = np.full((rows, columns), np.inf)
        numerator = np.full((rows, columns), -np.inf if counting == "remove" else np.inf)
        if counting == "add-remove":
            added = _up(last.total[0], clip.shift) + k * clip.coarse
            # A removal in place of an addition never raises the numerator, and takes two off the
            # size: it is worth nothing where the numerator is negative.
            limit = np.where(added > 0, _worth_removing(added, records - k, clip), -np.inf)
            limit *= 2.0**clip.shift
            numerator = _up(first.total[0], clip.shift) + int(distances[0]) * clip.coarse
        # The removal of a record at the least possible end takes at most one unit off the
        # numerator: as many as possible are best, if that is large beside the size.
        large = numerator > 2.0 * (records + 2.0 * k)
        for column in range(columns):
            smallest = first.of(column)
            looked_at = np.flatnonzero(smallest.min(axis=1) < limit[:, column])
            largest = last.of(column)[looked_at]
            chosen = np.argpartition(largest, most - 1, axis=1)[:, :most]
            bar = np.take_along_axis(largest, chosen[:, -1:], axis=1)
            least = (bar[:, 0] == -clip.below) & large[looked_at, column]
            found.all_least[looked_at[least], column] = True
            looked_at = looked_at[~least]
            if not len(looked_at):
                continue
            smallest = smallest[looked_at]
            listed = smallest < bar[~least]
            np.put_along_axis(listed, chosen[~least], True, axis=1)
            listed &= smallest < limit[looked_at, column, None]
            found.columns[column] = SmallEnds.of(listed, looked_at, last.parts)
        return found


def mean_bound(
    ends: RecordEnds, distances: Integers, removable: Removable, *, counting: Counting
) -> Array:
    """Return upper bounds on the mean gradient of every batch at the given distances, in coarse
    units.

    With u_1 >= u_2 >= ... the upper ends of the b records' gradients, the bound at distance k is
    the maximum over j removed and l added records of (u_1 + ... + u_(b - j) + l gamma) / (b - j +
    l). The maximum is over j + l = k, with "replace" at j = l = k, with "remove" over j <= k and
    l = 0, with "insert" at j = 0 and l = k. It is gamma once k reaches b, but for insertions.

    Args:
        ends: the b records' upper ends, over a box for each distance, or over one for all.
        distances: k of each box, shape (boxes,).
        removable: which records are looked at.
        counting: the one of these four countings.

    Returns:
        Shape (boxes, rows, columns).
    """
    clip, records = ends.clip, ends.records
    k = distances[:, None, None]
    none = np.where(k > 0, clip.coarse, 0.0) + np.zeros(ends.total.shape)
    if records == 0:
        return none

    def mean(total: Integers, removed: Integers, k: Integers, j: Integers) -> Array:
        added, size = {
            "add-remove": (k - j, records + k - 2 * j),
            "replace": (k, records + 0 * k),
            "remove": (0 * k, records - j),
            "insert": (k, records + k),
        }[counting]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((_up(total - removed, clip.shift) + added * clip.coarse) / size)

    bound = mean(ends.total, np.int64(0), k, np.int64(0))
    if counting == "insert":
        return bound
    possible = (k < records) & (k > 0)
    if counting == "replace":
        bound = np.where(possible, -np.inf, bound)
    whole = mean(ends.total, -k * int(clip.below), k, k)
    bound = np.where(possible & removable.all_least, whole, bound)
    for column, places in enumerate(removable.columns):
        if places is None:
            continue
        smallest = ends.at(places, column)[..., : int(distances[-1])]
        listed = np.isfinite(smallest)
        removed = np.cumsum(np.where(listed, smallest, 0.0).astype(np.int64), axis=2)
        j = np.arange(1, smallest.shape[2] + 1)
        listed = listed & ((j == k) if counting == "replace" else (j <= k))
        means = mean(ends.total[:, places.rows, column, None], removed, k, j)
        best = np.where(listed, means, -np.inf).max(axis=2, initial=-np.inf)
        bound[:, places.rows, column] = np.maximum(bound[:, places.rows, column], best)
    return np.where(k < records, bound, none)


def _worth_removing(added: Array, fewest: Array, clip: Clip) -> Array:
    """Return coarse numbers such that only records whose ends lie below can be worth removing.

    There is one for every row and column. Removing a record with end u in place of adding one
    raises the mean only if u < 2 V - gamma, V the bound that is looked for. V is at most gamma, and
    at most what k records at -gamma would leave: ``added`` over b - k, or 0 where that is negative.
    Two units of slack cover the rounding of sums and of this, so that what is skipped never changes
    a bound.

    Args:
        added: numerators by additions alone, in coarse units.
        fewest: b - k, not positive where every end may be worth it.
        clip: gamma.
    """
    largest = np.divide(added, fewest, out=np.full(added.shape, clip.coarse), where=fewest > 0)
    return np.asarray(2.0 * np.clip(largest, 0.0, clip.coarse) - clip.coarse + 2.0)


def _up(values: Integers | np.int64, shift: int) -> Array:
    """Return whole numbers divided by 2**shift and rounded up, as float64."""
    return np.asarray(-((-values) >> shift), dtype=np.float64)
