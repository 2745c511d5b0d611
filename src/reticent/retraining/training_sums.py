"""Bounds on the mean of clipped gradients over every batch that k changes of records can make."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Integers
from reticent.retraining.training_network import Factors
from reticent.retraining.training_settings import Counting

_ENDS_AT_ONCE = 2**16


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


def constant_entries(factors: Factors, clip: Clip) -> tuple[npt.NDArray[np.bool_], Integers]:
    """Return which records' clipped entries are one number over a whole box, and so over every box
    inside, and their sums.

    Args:
        factors: factors of a linear model's box, n at most ``RECORDS_AT_ONCE``.
        clip: gamma.

    Returns:
        Whether that column's entries are, in every row, shape (columns, n). Then the sums of
        negated lower ends, and of upper ends, of those alone, shape (2, 1, rows, columns).
    """
    inputs = factors.column_low
    most = clip.above if factors.share is None else np.ceil(factors.share * clip.above)
    constant = np.ones(inputs.shape, dtype=bool)
    for low, high in zip(factors.row_low, factors.row_high, strict=True):
        one, other = low * inputs, high * inputs
        clipped = (np.minimum(one, other) >= most) | (np.maximum(one, other) <= -most)
        constant &= clipped | (one == other)
    sums = np.empty((2, 1, len(factors.row_low), len(inputs)), np.int64)
    for side, sign in zip(sums, (-1.0, 1.0), strict=True):
        for row, low in enumerate(factors.row_low):
            ends = clip.cut(sign * low * inputs, factors.share)
            side[0, row] = (ends * constant).sum(axis=1)
    return constant, sums


class Entries(NamedTuple):
    """Some entries of gradients.

    Attributes:
        places: places in an array of shape (rows of a box, n).
        records, columns: the record and the column of each.
    """

    places: Integers
    records: Integers
    columns: Integers

    def of(self, factors: Factors, rows: int) -> Factors:
        """Return these entries' factors: a row for each box, a record for each entry."""
        low, high = (
            np.take(ends.reshape(len(ends) // rows, -1), self.places, axis=1)
            for ends in (factors.row_low, factors.row_high)
        )
        lower = upper = factors.column_high[self.columns, self.records][None]
        if factors.column_low is not factors.column_high:
            lower = factors.column_low[self.columns, self.records][None]
        share = None if factors.share is None else factors.share[self.records]
        return Factors(low, high, lower, upper, share)


class Clipped(NamedTuple):
    """Entries that gamma may clip somewhere in a box.

    Attributes:
        dense: columns where they are more than a quarter.
        entries: those of the other columns, sorted by column and row.
        starts: the first entry of each column and row that has any.
        lines: the rows and the columns of these.
    """

    dense: list[int]
    entries: Entries
    starts: Integers
    lines: tuple[Integers, Integers]

    @classmethod
    def of(cls, factors: Factors, clip: Clip) -> Clipped:
        """Return what gamma may clip, from the factors of one box."""
        gamma = clip.below if factors.share is None else np.floor(factors.share * clip.below)
        size = np.maximum(-factors.row_low, factors.row_high)
        dense, places, columns = [], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        largest = np.maximum(-factors.column_low, factors.column_high)
        none = np.zeros(0, np.int64)
        within = size.max(initial=0.0) * largest.max(axis=1, initial=0.0) <= np.min(
            gamma, initial=clip.below
        )
        for column, values in enumerate(largest):
            found = none if within[column] else np.flatnonzero(size * values > gamma)
            if 4 * len(found) > size.size:
                dense.append(column)
            else:
                places.append(found)
                columns.append(np.full(len(found), column))
        place, column_of = np.concatenate(places), np.concatenate(columns)
        row, record = np.divmod(place, max(size.shape[1], 1))
        starts = np.flatnonzero(np.diff(column_of * len(size) + row, prepend=-1))
        entries = Entries(place, record, column_of)
        return cls(dense, entries, starts, (row[starts], column_of[starts]))


def block_sums(factors: Factors, clip: Clip, clipped: Clipped, rows: int) -> Integers:
    """Return one block's sums of negated lower ends, and of upper ends, of clipped gradients.

    They are those of a matrix product, less what gamma takes off the entries that it may clip.

    Args:
        factors: factors of one layer, n at most ``RECORDS_AT_ONCE``, of one box or of several.
        clip: clip of that layer.
        clipped: the entries that may be clipped in a box around all of them.
        rows: rows of one box.

    Returns:
        Exact whole numbers, shape (2, boxes, rows, columns).
    """
    # bit-exact: ends are whole numbers, and a block so small that their sums are too.
    columns, n = factors.column_low.shape
    if len(clipped.dense) < columns:
        sums = np.stack(_unclipped_sums(factors))
    else:
        sums = np.empty((2, len(factors.row_low), columns))
    sums = sums.reshape(2, -1, rows, columns)
    for column in clipped.dense:
        for upper, side in enumerate(sums):
            ends = clip.cut(_ends(factors, column, bool(upper)), factors.share)
            side[..., column] = (ends @ np.ones(n)).reshape(-1, rows)
    if len(clipped.starts):
        some = clipped.entries.of(factors, rows)
        for upper, side in enumerate(sums):
            ends = _ends(some, 0, bool(upper))
            taken = ends - clip.cut(ends.copy(), some.share)
            side[:, *clipped.lines] -= np.add.reduceat(taken, clipped.starts, axis=1)
    return sums.astype(np.int64)


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


def _ends(factors: Factors, column: int | Integers, upper: bool) -> Array:
    """Return upper, or negated lower, ends of gradients, not clipped, shape (rows, n).

    Args:
        factors: the factors.
        column: one column, or one for each row.
        upper: which ends.
    """
    values = factors.column_high[column] if upper else -factors.column_low[column]
    # Either the column is known exactly or the rows are non-negative: the larger product is the
    # upper end.
    if values.max(initial=0.0) <= 0.0:
        return np.asarray(factors.row_low * values)
    ends = np.asarray(factors.row_high * values)
    if values.min(initial=0.0) < 0.0:
        np.maximum(ends, factors.row_low * values, out=ends)
    return ends


class _Found(NamedTuple):
    """Records found for some lines: a line, a record, and its ends over the smallest and over the
    largest box, each of shape (n,).
    """

    line: Integers
    record: npt.NDArray[np.int32]
    low: Array
    high: Array

    def only(self, chosen: npt.NDArray[Any]) -> _Found:
        """Return some of them."""
        return _Found(*(values[chosen] for values in self))


@dataclass(frozen=True, eq=False)
class Smallest:
    """Which records of a batch have the k smallest ends on some lines: a row and a column of a
    layer each.

    Blocks of records are looked at once, in turn. Ends grow with the box. So over any of the nested
    boxes the k smallest are among k records that are the smallest over the largest box, and those
    that lie below all these over the smallest box.

    Attributes:
        clip: gamma.
        columns: columns of the layer.
        upper: whether the ends are the upper ones, or the negated lower ones.
        lines: the lines.
        limits: numbers such that only records whose ends lie below can be worth removing, by line.
        large: whether as many records as possible are best to remove, should they be at the least
            possible end, by line.
        low, high: ends over the smallest and the largest box of the k records so far, shape (lines,
            k). They are infinite where there are fewer.
        records: their numbers, shape (lines, k).
        bars: numbers such that records are of no use whose end over the smallest box is not below,
            by line.
        others: further records, which lay below the bar.
    """

    clip: Clip
    columns: int
    upper: bool
    lines: Integers
    limits: Array
    large: npt.NDArray[np.bool_]
    low: Array
    high: Array
    records: npt.NDArray[np.int32]
    bars: Array
    others: list[_Found]

    @classmethod
    def of_none(
        cls,
        totals: Integers,
        reach: Array,
        distances: Integers,
        clip: Clip,
        *,
        upper: bool,
        records: int,
        counting: Counting,
    ) -> Smallest:
        """Return what is known before the first block: the lines on which removals can be worth it.

        Args:
            totals: sums of ends over every box, or over the smallest and the largest, shape
                (boxes, rows, columns).
            reach: sizes that no end over the largest box exceeds, shape (rows, columns).
            distances: the distances, increasing.
            clip: gamma.
            upper: whether the ends are the upper ones.
            records: the number of records.
            counting: as for ``mean_bound``.
        """
        k, lines = int(distances[-1]), reach.size
        limits = np.full(lines, np.inf)
        numerator = np.full(lines, -np.inf if counting == "remove" else np.inf)
        if counting == "add-remove":
            added = _up(totals[-1].ravel(), clip.shift) + k * clip.coarse
            # A removal in place of an addition never raises the numerator, and takes two off the
            # size: it is worth nothing where the numerator is negative.
            limits = np.where(added > 0, _worth_removing(added, records - k, clip), -np.inf)
            limits *= 2.0**clip.shift
            numerator = _up(totals[0].ravel(), clip.shift) + int(distances[0]) * clip.coarse
        most = 0 if counting == "insert" else min(k, records)
        near = np.flatnonzero(-reach.ravel() < limits) if most else np.zeros(0, np.int64)
        # The removal of a record at the least possible end takes at most one unit off the
        # numerator: as many as possible are best, if that is large beside the size.
        large = numerator[near] > 2.0 * (records + 2.0 * k)
        low, high = np.full((2, len(near), most), np.inf)
        numbers = np.zeros(low.shape, np.int32)
        limits, bars = limits[near], limits[near]
        return cls(clip, reach.shape[1], upper, near, limits, large, low, high, numbers, bars, [])

    def add(self, first: Factors, last: Factors, numbers: Integers) -> None:
        """Look at a block of records.

        Args:
            first, last: factors of the smallest and of the largest box.
            numbers: the records' numbers.
        """
        k, least = self.high.shape[1], -self.clip.below
        open_ = np.flatnonzero(self.bars > least)
        at_once = max(1, _ENDS_AT_ONCE // max(len(numbers), 1))
        for place in range(0, len(open_), at_once):
            own = open_[place : place + at_once]
            low = self._ends(first, own)
            near = low.min(axis=1, initial=np.inf) < self.bars[own]
            if not near.any():
                continue
            own, low = own[near], low[near]
            high = low if first is last else self._ends(last, own)
            # As many as possible are best: which of them, is of no consequence.
            known = (self.high[own] == least).sum(axis=1) + (high == least).sum(axis=1)
            settled = self.large[own] & (known >= k)
            self.high[own[settled]], self.bars[own[settled]] = least, least
            own, low, high = own[~settled], low[~settled], high[~settled]
            if not len(own):
                continue
            record = np.broadcast_to(numbers.astype(np.int32), low.shape)
            low = np.concatenate([self.low[own], low], axis=1)
            high = np.concatenate([self.high[own], high], axis=1)
            record = np.concatenate([self.records[own], record], axis=1)
            order = np.argpartition(high, k - 1, axis=1)
            kth = np.take_along_axis(high, order[:, k - 1 : k], axis=1)
            self.bars[own] = np.minimum(kth[:, 0], self.limits[own])
            if first is not last:
                listed = low < self.bars[own, None]
                np.put_along_axis(listed, order[:, :k], False, axis=1)
                line, other = np.nonzero(listed)
                if len(line):
                    found = record[line, other], low[line, other], high[line, other]
                    self.others.append(_Found(own[line], *found))
            for kept, values in ((self.low, low), (self.high, high), (self.records, record)):
                kept[own] = np.take_along_axis(values, order[:, :k], axis=1)

    def _ends(self, factors: Factors, own: Integers) -> Array:
        """Return every record's end on some of the lines over one box, shape (lines, n)."""
        row, column = np.divmod(self.lines[own], self.columns)
        some = replace(factors, row_low=factors.row_low[row], row_high=factors.row_high[row])
        return self.clip.cut(_ends(some, column, self.upper), factors.share)


@dataclass(frozen=True, eq=False)
class Removable:
    """Which records are worth removing at any of several distances, whose boxes are nested.

    Attributes:
        clip, columns, upper: attributes of ``Smallest``.
        all_least: lines whose records to remove are known to be at the least possible end, and as
            many as possible are best.
        lines: other lines that have some.
        most: the largest number of records of one of these.
        found: those records.
        places: where each goes in an array of shape (lines, most).
        moving: those whose end is not one number over all boxes, by rising record.
    """

    clip: Clip
    columns: int
    upper: bool
    all_least: Integers
    lines: Integers
    most: int
    found: _Found
    places: Integers
    moving: Integers

    @classmethod
    def of(cls, smallest: Smallest) -> Removable:
        """Return what the ends over the smallest and over the largest box tell about all."""
        clip, low = smallest.clip, smallest.low
        kth = smallest.high.max(axis=1, initial=-np.inf)
        least = smallest.large & (kth == -clip.below)
        bars = np.where(least, -np.inf, smallest.bars)
        own, place = np.nonzero(low < np.where(least, -np.inf, smallest.limits)[:, None])
        parts = [
            _Found(own, smallest.records[own, place], low[own, place], smallest.high[own, place])
        ]
        parts += [other.only(other.low < bars[other.line]) for other in smallest.others]
        found = _Found(*(np.concatenate(values) for values in zip(*parts, strict=True)))
        found = found.only(np.argsort(found.line, kind="stable"))
        own, line, numbers = np.unique(found.line, return_inverse=True, return_counts=True)
        lines, most = smallest.lines[own], int(numbers.max(initial=0))
        places = line * most + np.arange(len(line)) - (np.cumsum(numbers) - numbers)[line]
        moving = np.flatnonzero(found.low < found.high)
        moving = moving[np.argsort(found.record[moving])]
        found = found._replace(line=smallest.lines[found.line])
        all_least = smallest.lines[least]
        shape = clip, smallest.columns, smallest.upper
        return cls(*shape, all_least, lines, most, found, places, moving)

    def listed(self, ends: Array) -> Array:
        """Return the ends of ``found``, shape (boxes, n), as an array of shape (boxes, lines, most)
        that is infinite where a line has fewer.
        """
        listed = np.full((len(ends), len(self.lines) * self.most), np.inf)
        listed[:, self.places] = ends
        return listed.reshape(len(ends), len(self.lines), self.most)

    def with_moving(self, ends: Array) -> Array:
        """Return the ends of ``found``, shape (boxes, n), from those of ``moving``."""
        found = np.repeat(self.found.low[None], len(ends), axis=0)
        found[:, self.moving] = ends
        return found

    def write(self, ends: Array, factors: Factors, records: Integers) -> None:
        """Write the ends of some records over several boxes.

        Args:
            ends: shape (boxes, n) for the n of ``moving``.
            factors: factors of these boxes for some records, whose row values are by box.
            records: their numbers, rising. No other record is moving between their first and last.
        """
        numbers = self.found.record[self.moving]
        own = slice(*np.searchsorted(numbers, (records[0], records[-1] + 1)))
        here = np.searchsorted(records, numbers[own])
        row, column = np.divmod(self.found.line[self.moving[own]], self.columns)
        some = Entries(row * len(records) + here, here, column).of(
            factors, len(factors.row_low) // len(ends)
        )
        ends[:, own] = self.clip.cut(_ends(some, 0, self.upper), some.share)


def mean_bound(
    total: Integers,
    ends: Array,
    distances: Integers,
    removable: Removable,
    *,
    records: int,
    counting: Counting,
) -> Array:
    """Return upper bounds on the mean gradient of every batch at the given distances, in coarse
    units.

    With u_1 >= u_2 >= ... the upper ends of the b records' gradients, the bound at distance k is
    the maximum over j removed and l added records of (u_1 + ... + u_(b - j) + l gamma) / (b - j +
    l). The maximum is over j + l = k, with "replace" over j <= k and l = k, with "remove" over j <=
    k and l = 0, with "insert" at j = 0 and l = k. It is gamma once k reaches b, but for insertions.

    On paper j = k is best for "replace". With sums rounded up fewer may be, by less than a unit.
    A neighbour with a record more in this batch can reach that mean.

    Args:
        total: sums of the b records' upper ends, over a box for each distance, or over one for all,
            shape (boxes, rows, columns).
        ends: ends of the records that are worth removing, from ``Removable.listed``.
        distances: k of each box, shape (boxes,), increasing.
        removable: which records these are.
        records: b.
        counting: the one of these four countings.

    Returns:
        Shape (boxes, rows, columns).
    """
    clip, shape = removable.clip, (len(distances), *total.shape[1:])
    total = total.reshape(len(total), -1)
    k = distances[:, None]

    def mean(total: Integers, removed: Integers, k: Integers, j: Integers) -> Array:
        added, size = {
            "add-remove": (k - j, records + k - 2 * j),
            "replace": (k, records + k - j),
            "remove": (0 * k, records - j),
            "insert": (k, records + k),
        }[counting]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((_up(total - removed, clip.shift) + added * clip.coarse) / size)

    bound = mean(total, 0 * k, k, 0 * k)
    open_ = k < records
    if counting == "insert":
        open_ = np.full(k.shape, records > 0)
    least = removable.all_least
    whole = mean(total[:, least], -k * int(clip.below), k, k)
    bound[:, least] = np.where(k > 0, whole, bound[:, least])
    if len(removable.lines):
        smallest = np.sort(ends, axis=2)[..., : int(distances[-1])]
        listed = np.isfinite(smallest)
        removed = np.cumsum(np.where(listed, smallest, 0.0).astype(np.int64), axis=2)
        j = np.arange(1, smallest.shape[2] + 1)
        lines, k_of = removable.lines, k[..., None]
        listed = listed & (j <= k_of)
        means = mean(total[:, lines, None], removed, k_of, j)
        best = np.where(listed, means, -np.inf).max(axis=2, initial=-np.inf)
        bound[:, lines] = np.maximum(bound[:, lines], best)
    return np.where(open_, bound, np.where(k > 0, clip.coarse, 0.0)).reshape(shape)


def _worth_removing(added: Array, fewest: int, clip: Clip) -> Array:
    """Return coarse numbers such that only records whose ends lie below can be worth removing.

    There is one for every line. Removing a record with end u in place of adding one
    raises the mean only if u < 2 V - gamma, V the bound that is looked for. V is at most gamma, and
    at most what k records at -gamma would leave: ``added`` over b - k, or 0 where that is negative.
    Two units of slack cover the rounding of sums and of this, so that what is skipped never changes
    a bound.

    Args:
        added: numerators by additions alone, in coarse units.
        fewest: b - k, not positive where every end may be worth it.
        clip: gamma.
    """
    largest = np.clip(added / fewest, 0.0, clip.coarse) if fewest > 0 else clip.coarse
    return np.asarray(2.0 * largest - clip.coarse + 2.0)


def _up(values: Integers | np.int64, shift: int) -> Array:
    """Return whole numbers divided by 2**shift and rounded up, as float64."""
    return np.asarray(-((-values) >> shift), dtype=np.float64)
