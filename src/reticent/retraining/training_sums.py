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

_ENDS_AT_ONCE = 2**19


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


class SmallEnds(NamedTuple):
    """Where the smallest ends of some lines are, a line being a row and a column.

    Attributes:
        lines: the lines.
        most: the largest number of places in one.
        parts: for a block of records its index, the places in it, and where each goes in an array
            of shape (lines, most).
    """

    lines: Integers
    most: int
    parts: list[tuple[int, Entries, Integers]]

    @classmethod
    def of(cls, lines: Integers, line: Integers, record: Integers, ends: RecordEnds) -> SmallEnds:
        """Return the places of some records, in blocks.

        Args:
            lines: the lines.
            line, record: index into ``lines``, increasing, and record of each place.
            ends: whose blocks.
        """
        numbers = np.bincount(line, minlength=len(lines))
        most = int(numbers.max(initial=0))
        position = line * most + np.arange(len(line)) - (np.cumsum(numbers) - numbers)[line]
        row, column = np.divmod(lines[line], ends.total.shape[2])
        parts, start = [], 0
        for index, part in enumerate(ends.parts):
            n = part.row_low.shape[1]
            own = np.flatnonzero((record >= start) & (record < start + n))
            here = record[own] - start
            if len(own):
                parts.append(
                    (index, Entries(row[own] * n + here, here, column[own]), position[own])
                )
            start += n
        return cls(lines, most, parts)


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

    @property
    def of_lines(self) -> Integers:
        """The sums, shape (boxes, lines)."""
        return self.total.reshape(len(self.total), -1)

    def box(self, place: int) -> RecordEnds:
        """Return the ends over the first box (0) or the last (-1)."""
        parts = [part.box(place, self.total.shape[1]) for part in self.parts]
        return replace(self, parts=parts, total=self.total[[place]])

    def least(self) -> Array:
        """Return numbers that no end of a line over one box is below, shape (lines,)."""
        sizes = []
        for part in self.parts:
            rows = np.maximum(-part.row_low, part.row_high).max(axis=1, initial=0.0)
            columns = np.maximum(-part.column_low, part.column_high).max(axis=1, initial=0.0)
            sizes.append((rows[:, None] * columns).ravel())
        return np.asarray(-np.max(sizes, axis=0))

    def of(self, lines: Integers) -> Array:
        """Return every record's end over one box, shape (lines, records)."""
        row, column = np.divmod(lines, self.total.shape[2])
        blocks = []
        for part in self.parts:
            own = replace(part, row_low=part.row_low[row], row_high=part.row_high[row])
            blocks.append(self.clip.cut(_ends(own, column, self.upper), part.share))
        return np.concatenate(blocks, axis=1)

    def at(self, places: SmallEnds) -> Array:
        """Return the ends at some places in increasing order, shape (boxes, lines, most).

        They are infinite where a line has fewer places.
        """
        boxes = len(self.total)
        found = np.full((boxes, len(places.lines) * places.most), np.inf)
        for index, entries, position in places.parts:
            some = entries.of(self.parts[index], self.total.shape[1])
            found[:, position] = self.clip.cut(_ends(some, 0, self.upper), some.share)
        return np.sort(found.reshape(boxes, len(places.lines), places.most), axis=2)


@dataclass(frozen=True, eq=False)
class Removable:
    """Which records are worth removing at any of several distances, whose boxes are nested.

    Attributes:
        all_least: whether the records to remove are known to be at the least possible end, and as
            many as possible are best, shape (lines,).
        places: where the smallest ends of other lines are.
    """

    all_least: npt.NDArray[np.bool_]
    places: SmallEnds

    @classmethod
    def between(
        cls, first: RecordEnds, last: RecordEnds, distances: Integers, *, counting: Counting
    ) -> Removable:
        """Return what the ends over the smallest and over the largest box tell about all.

        Ends grow with the box. So at each distance the k smallest are among k records that are the
        smallest over the largest box, and those that lie below all these over the smallest.

        Args:
            first, last: ends over the smallest box, and over the largest.
            distances: the distances, increasing.
            counting: as for ``mean_bound``.
        """
        clip, records, k = last.clip, last.records, int(distances[-1])
        lines, most = last.of_lines.shape[1], min(k, records)
        all_least = np.zeros(lines, dtype=bool)
        line, record = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        limit = np.full(lines, np.inf)
        numerator = np.full(lines, -np.inf if counting == "remove" else np.inf)
        if counting == "add-remove":
            added = _up(last.of_lines[0], clip.shift) + k * clip.coarse
            # A removal in place of an addition never raises the numerator, and takes two off the
            # size: it is worth nothing where the numerator is negative.
            limit = np.where(added > 0, _worth_removing(added, records - k, clip), -np.inf)
            limit *= 2.0**clip.shift
            numerator = _up(first.of_lines[0], clip.shift) + int(distances[0]) * clip.coarse
        # The removal of a record at the least possible end takes at most one unit off the
        # numerator: as many as possible are best, if that is large beside the size.
        large = numerator > 2.0 * (records + 2.0 * k)
        at_once = max(1, _ENDS_AT_ONCE // max(records, 1))
        near = np.flatnonzero(first.least() < limit) if most and counting != "insert" else line[0]
        for start in range(0, len(near), at_once):
            own = near[start : start + at_once]
            largest = last.of(own)
            bar = np.partition(largest, most - 1, axis=1)[:, most - 1]
            least = (bar == -clip.below) & large[own]
            all_least[own[least]] = True
            own, largest, bar = own[~least], largest[~least], bar[~least, None]
            smallest = first.of(own)
            kept = smallest.min(axis=1) < limit[own]
            own, smallest = own[kept], smallest[kept]
            listed = smallest < bar[kept]
            chosen = np.argpartition(largest[kept], most - 1, axis=1)[:, :most]
            np.put_along_axis(listed, chosen, True, axis=1)
            listed &= smallest < limit[own, None]
            found = np.nonzero(listed)
            line.append(own[found[0]])
            record.append(found[1])
        listed_lines, index = np.unique(np.concatenate(line), return_inverse=True)
        places = SmallEnds.of(listed_lines, index, np.concatenate(record), last)
        return cls(all_least, places)


def mean_bound(
    ends: RecordEnds, distances: Integers, removable: Removable, *, counting: Counting
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
        ends: the b records' upper ends, over a box for each distance, or over one for all.
        distances: k of each box, shape (boxes,), increasing.
        removable: which records are looked at.
        counting: the one of these four countings.

    Returns:
        Shape (boxes, rows, columns).
    """
    clip, records, total = ends.clip, ends.records, ends.of_lines
    k = distances[:, None]
    shape = (len(distances), *ends.total.shape[1:])

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
    whole = mean(total, -k * int(clip.below), k, k)
    bound = np.where(removable.all_least & (k > 0), whole, bound)
    if len(removable.places.lines):
        smallest = ends.at(removable.places)[..., : int(distances[-1])]
        listed = np.isfinite(smallest)
        removed = np.cumsum(np.where(listed, smallest, 0.0).astype(np.int64), axis=2)
        j = np.arange(1, smallest.shape[2] + 1)
        lines, k_of = removable.places.lines, k[..., None]
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
