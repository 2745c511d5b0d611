"""Bounds on the mean of clipped gradients over every batch that k changes of records can make."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
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


@dataclass(frozen=True, eq=False)
class BlockSums:
    """The sums of one block's records, for every row and column, of upper or negated lower ends.

    Attributes:
        total: sums of clipped ends, exact whole numbers.
        floored: a lower bound on the number of records whose end is gamma's negative, 0 where none
            was looked at.
        least: a number that no record's end is below.
    """

    total: Integers
    floored: Integers
    least: Array

    def of_boxes(self, rows: int) -> BlockSums:
        """Return the sums with ``rows`` rows: those of every box, where they are known for one."""
        times = (rows // len(self.total), 1)
        return BlockSums(
            np.tile(self.total, times), np.tile(self.floored, times), np.tile(self.least, times)
        )

    def plus(self, other: BlockSums) -> BlockSums:
        """Return the sums of both blocks together."""
        return BlockSums(
            self.total + other.total,
            self.floored + other.floored,
            np.minimum(self.least, other.least),
        )


def constant_entries(
    factors: Factors, clip: Clip
) -> tuple[npt.NDArray[np.bool_], BlockSums, BlockSums]:
    """Return which records' clipped entries are one number over the whole box, and so over every
    box inside, and their sums.

    Args:
        factors: factors of a linear model's box, n at most ``RECORDS_AT_ONCE``.
        clip: gamma.

    Returns:
        Shape (columns, n): whether that column's entries are, in every row. Then the sums of
        negated lower ends, and of upper ends, of those alone.
    """
    inputs = factors.column_low
    most = clip.above if factors.share is None else np.ceil(factors.share * clip.above)
    constant = np.ones(inputs.shape, dtype=bool)
    for low, high in zip(factors.row_low, factors.row_high, strict=True):
        least, other = low * inputs, high * inputs
        clipped = (np.minimum(least, other) >= most) | (np.maximum(least, other) <= -most)
        constant &= clipped | (least == other)
    sums = []
    for sign in (-1.0, 1.0):
        rows = [clip.cut(sign * low * inputs, factors.share) * constant for low in factors.row_low]
        floored = [(ends == -clip.below).sum(axis=1) for ends in rows]
        least = np.array([ends.min(axis=1, initial=clip.above) for ends in rows])
        sums.append(BlockSums(np.array([ends.sum(axis=1) for ends in rows]).astype(np.int64), np.array(floored), least))
    return constant, *sums


class Entries(NamedTuple):
    """Some entries of one column of a box's gradients, of shape (rows, n), row after row.

    Attributes:
        places: places in the flat array.
        records: the record of each.
        rows: rows that have any.
        starts: the first entry of each such row.
        entries: the number of all.
    """

    places: Integers
    records: Integers
    rows: Integers
    starts: Integers
    entries: int


def clipped_entries(factors: Factors, clip: Clip) -> list[Entries | None]:
    """Return the entries of each column that gamma may clip somewhere in a box, None for more than
    half.
    """
    gamma = clip.below if factors.share is None else np.floor(factors.share * clip.below)
    size = np.maximum(-factors.row_low, factors.row_high)
    found: list[Entries | None] = []
    for column in np.maximum(-factors.column_low, factors.column_high):
        places = np.flatnonzero(size * column > gamma)
        if 2 * len(places) > size.size:
            found.append(None)
            continue
        row, records = np.divmod(places, max(size.shape[1], 1))
        starts = np.flatnonzero(np.diff(row, prepend=-1))
        found.append(Entries(places, records, row[starts], starts, size.size))
    return found


def block_sums(
    factors: Factors, clip: Clip, entries: list[Entries | None]
) -> tuple[BlockSums, BlockSums]:
    """Return one block's sums of negated lower ends, and of upper ends, of clipped gradients.

    They are those of a matrix product, less what gamma takes off the entries that it may clip.

    Args:
        factors: factors of one layer, n at most ``RECORDS_AT_ONCE``, of one box or of several.
        clip: clip of that layer.
        entries: ``clipped_entries`` of a box around all of them.

    Returns:
        Two sums for rows and columns.
    """
    # bit-exact: ends are whole numbers, and a block so small that their sums are too.
    shape = factors.largest.shape
    dense = all(listed is None for listed in entries)
    sums = np.empty((2, *shape)) if dense else np.stack(_unclipped_sums(factors))
    floored = np.zeros(sums.shape, np.int64)
    least = np.repeat(-np.minimum(factors.largest, clip.above)[None], 2, axis=0)
    ones = np.ones(factors.row_low.shape[1])
    for column, listed in enumerate(entries):
        if listed is None:
            for side, ends in enumerate(_both_ends(factors, slice(None), column)):
                clip.cut(ends, factors.share)
                sums[side, :, column] = ends @ ones
                least[side, :, column] = ends.min(axis=1, initial=clip.above)
                # Eight comparisons to a byte, and bits are counted: several times faster than
                # np.count_nonzero along an axis.
                at_floor = np.packbits(ends == -clip.below, axis=1)
                floored[side, :, column] = np.bitwise_count(at_floor).sum(axis=1)
        elif len(listed.places):
            some = _listed(factors, listed, column)
            boxes = len(some.row_low)
            for side, ends in enumerate(_both_ends(some, slice(None), 0)):
                cut = clip.cut(ends.copy(), some.share)
                for table, of_entries in ((sums, cut - ends), (floored, cut == -clip.below)):
                    found = table[side].reshape(boxes, -1, shape[1])
                    found[:, listed.rows, column] += np.add.reduceat(
                        of_entries, listed.starts, axis=1, dtype=table.dtype
                    )
    totals = sums.astype(np.int64)
    return BlockSums(totals[0], floored[0], least[0]), BlockSums(totals[1], floored[1], least[1])


def _listed(factors: Factors, listed: Entries, column: int) -> Factors:
    """Return the listed entries of a column of every box: boxes become rows, entries records."""
    low, high = (
        np.take(ends.reshape(-1, listed.entries), listed.places, axis=1)
        for ends in (factors.row_low, factors.row_high)
    )
    lower = factors.column_low[column, listed.records][None]
    exact = factors.column_low is factors.column_high
    upper = lower if exact else factors.column_high[column, listed.records][None]
    share = None if factors.share is None else factors.share[listed.records]
    return Factors(low, high, lower, upper, share)


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


def _both_ends(factors: Factors, rows: slice | Integers, column: int) -> tuple[Array, Array]:
    """Return negated lower ends, and upper ends, of the gradients of some rows and one column.

    They are not clipped, and of shape (rows, n) each.
    """
    lower, upper = factors.column_low[column], factors.column_high[column]
    low, high = factors.row_low[rows], factors.row_high[rows]
    if lower.min(initial=0.0) >= 0.0:
        return low * -lower, high * upper
    # Either the column is known exactly or the rows are non-negative: of both ends' products one is
    # the least, one the largest.
    upper_ends = low * upper
    others = high * upper
    if factors.column_low is factors.column_high:
        lower_ends = np.minimum(upper_ends, others)
    else:
        lower_ends = low * lower
        np.minimum(lower_ends, high * lower, out=lower_ends)
    return np.negative(lower_ends, out=lower_ends), np.maximum(upper_ends, others, out=upper_ends)


@dataclass(frozen=True, eq=False)
class RecordEnds:
    """The upper, or negated lower, ends of clipped gradients of one layer over a whole batch.

    Rows are those of every box, box after box. A block may have the rows of one box, which stand
    for those of all.

    Attributes:
        parts: factors of every block of records.
        of_parts: sums over every block.
        clip: gamma.
        upper: whether the ends are the upper ones.
    """

    parts: Sequence[Factors]
    of_parts: Sequence[BlockSums]
    clip: Clip
    upper: bool

    def sums(self, rows: int) -> BlockSums:
        """Return the sums over the batch, for ``rows`` rows."""
        return reduce(BlockSums.plus, (part.of_boxes(rows) for part in self.of_parts))

    @cached_property
    def records(self) -> int:
        """The number of records."""
        return sum(part.row_low.shape[1] for part in self.parts)

    def below(self, rows: Integers, column: int, limit: Array) -> tuple[Integers, Array]:
        """Return ends below a limit, for some rows and one column.

        Args:
            rows, column: the rows and the column.
            limit: shape (rows,), above -gamma.

        Returns:
            The number of ends in each row, shape (rows,), and the ends in any order, padded to
            (rows, most) by what is no end.
        """
        places, values = [np.zeros(0, np.int64)], [np.zeros(0)]
        for part, sums in zip(self.parts, self.of_parts, strict=True):
            here = np.flatnonzero(sums.least[rows % len(sums.least), column] < limit)
            if not len(here):
                continue
            # Clipped first: an end far above gamma counts as gamma, which the limit may lie above.
            ends = self.clip.cut(self._ends(part, rows[here], column), part.share)
            found = np.flatnonzero(ends < limit[here, None])
            places.append(here[found // ends.shape[1]])
            values.append(ends.ravel()[found])
        return _packed(np.concatenate(places), np.concatenate(values), limit)

    def clipped(self, rows: Integers, column: int) -> Iterator[Array]:
        """Yield every record's end for some rows and one column, block by block.

        Each block's shape is (rows, records of the block).
        """
        for part in self.parts:
            yield self.clip.cut(self._ends(part, rows, column), part.share)

    def _ends(self, part: Factors, rows: Integers, column: int) -> Array:
        """Return ends that are not clipped."""
        values = part.column_high[column] if self.upper else -part.column_low[column]
        rows = rows % len(part.row_low)
        # Either the column is known exactly or the rows are non-negative: the larger product is the
        # upper end.
        ends = part.row_high[rows]
        ends *= values
        if values.min(initial=0.0) < 0:
            others = part.row_low[rows]
            others *= values
            np.maximum(ends, others, out=ends)
        return ends


def mean_bound(ends: RecordEnds, distances: Integers, *, counting: Counting) -> Array:
    """Return upper bounds on the mean gradient of every batch at the given distances, in coarse
    units.

    With u_1 >= u_2 >= ... the upper ends of the b records' gradients, the bound at distance k is
    the maximum over j removed and l added records of (u_1 + ... + u_(b - j) + l gamma) / (b - j +
    l). The maximum is over j + l = k, with "replace" at j = l = k, with "remove" over j <= k and
    l = 0, with "insert" at j = 0 and l = k. It is gamma once k reaches b, but for insertions.

    Args:
        ends: the b records' upper ends. Single ones are looked at where their sum alone does not
            decide.
        distances: k of each row's box, shape (rows,).
        counting: the one of these four countings.

    Returns:
        Shape (rows, columns).
    """
    clip, sums, records = ends.clip, ends.sums(len(distances)), ends.records
    gamma, total = clip.coarse, sums.total
    bound = np.where(distances[:, None] > 0, gamma, 0.0) + np.zeros(total.shape)
    open_ = (distances < records)[:, None] & np.ones(total.shape, dtype=bool)
    if records == 0:
        return bound
    if counting == "replace":
        return _replaced(ends, distances, bound, open_)
    if counting == "remove":
        return _removed(ends, distances, bound, open_)
    k = distances[:, None].astype(np.float64)
    added = _up(total, clip.shift) + k * gamma
    if counting == "insert":
        return np.asarray(added / (records + k))
    np.copyto(bound, added / (records + k), where=open_)
    limit = _worth_removing(added, records - k, clip) * 2.0**clip.shift
    # A removal in place of an addition never raises the numerator, and takes two off the size: it
    # is worth nothing where the numerator is negative.
    unsettled = open_ & (k > 0) & (added > 0) & (sums.least < limit)
    # Where k records or more are at the least possible end, each takes at most one unit off the
    # numerator: all k are best, if that is large beside the size.
    whole = unsettled & (sums.floored >= k) & (added > 2.0 * (records + 2.0 * k))
    left = _up(total + distances[:, None] * int(clip.below), clip.shift)
    np.divide(left, records - k, out=bound, where=whole)
    unsettled &= ~whole
    for column in np.flatnonzero(unsettled.any(axis=0)).tolist():
        rows = np.flatnonzero(unsettled[:, column])
        most = int(distances[rows].max())
        found, candidates = ends.below(rows, column, limit[rows, column])
        removed = _smallest_sums(candidates, most)
        j = np.arange(1, removed.shape[-1] + 1)
        left = _up(total[rows, column][:, None] - removed, clip.shift)
        size = records + k[rows] - 2.0 * j
        possible = j <= np.minimum(found, distances[rows])[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            means = np.where(possible, (left + (k[rows] - j) * gamma) / size, -np.inf)
        bound[rows, column] = np.maximum(bound[rows, column], means.max(axis=1, initial=-np.inf))
    return bound


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


def _replaced(
    ends: RecordEnds, distances: Integers, bound: Array, open_: npt.NDArray[np.bool_]
) -> Array:
    """Return the bound for k removed and k added.

    Every record's entry is coarsened by itself, so that all sums of entries are exact.
    """
    rows = np.flatnonzero(open_[:, 0])
    if not len(rows):
        return bound
    k, clip, coarser = distances[rows], ends.clip, 2.0**-ends.clip.shift
    for column in range(bound.shape[1]):
        total = np.zeros(len(rows), np.int64)
        smallest = SmallestEnds.of(k)
        for values in ends.clipped(rows, column):
            smallest = smallest.with_block(values)
            # Scaling by a power of two is exact, and so is a sum of 1024 entries of at most 30
            # bits.
            np.multiply(values, coarser, out=values)
            np.ceil(values, out=values)
            total += (values @ np.ones(values.shape[1])).astype(np.int64)
        total -= smallest.coarse_sums(clip.shift)
        bound[rows, column] = (total + k * clip.coarse) / ends.records
    return bound


def _removed(
    ends: RecordEnds, distances: Integers, bound: Array, open_: npt.NDArray[np.bool_]
) -> Array:
    """Return the bound for up to k removed.

    It is the maximum over all numbers up to k, so that the rounding of sums nests too.
    """
    rows = np.flatnonzero(open_[:, 0])
    if not len(rows):
        return bound
    k, clip, records = distances[rows], ends.clip, ends.records
    sums = ends.sums(len(distances)).total
    j = np.arange(1, int(k.max(initial=0)) + 1)
    for column in range(bound.shape[1]):
        total = sums[rows, column]
        smallest = SmallestEnds.of(k)
        for values in ends.clipped(rows, column):
            smallest = smallest.with_block(values)
        finite = np.where(np.isinf(smallest.kept), 0.0, smallest.kept).astype(np.int64)
        left = _up(total[:, None] - np.cumsum(finite, axis=1), clip.shift)
        means = np.where(j <= k[:, None], left / np.maximum(records - j, 1), -np.inf)
        none = _up(total, clip.shift) / records
        bound[rows, column] = np.maximum(none, means.max(axis=1, initial=-np.inf))
    return bound


@dataclass(frozen=True, eq=False)
class SmallestEnds:
    """The k smallest ends of every row among the blocks seen so far.

    Attributes:
        k: number of ends of each row, shape (rows,).
        kept: increasing ends, shape (rows, most), infinite from a row's k on, and where there were
            fewer.
    """

    k: Integers
    kept: Array

    @classmethod
    def of(cls, k: Integers) -> SmallestEnds:
        """Return the ends of no block yet."""
        return cls(k, np.full((len(k), int(k.max(initial=0))), np.inf))

    def with_block(self, values: Array) -> SmallestEnds:
        """Return the ends with one block more, ``values`` of shape (rows, n).

        Only ends below the largest one kept can matter. After the first blocks they are few, so
        that nothing is sorted but them.
        """
        most = self.kept.shape[1]
        if most == 0:
            return self
        limit = np.where(self.k > 0, self.kept[np.arange(len(self.k)), self.k - 1], -np.inf)
        if most < values.shape[1] and np.isinf(limit).all():
            return self._keeping(np.partition(values, most - 1, axis=1)[:, :most])
        found = np.flatnonzero(values < limit[:, None])
        if not len(found):
            return self
        _, packed = _packed(
            found // values.shape[1], values.ravel()[found], np.full(len(self.k), np.inf)
        )
        return self._keeping(np.concatenate([self.kept, packed], axis=1))

    def coarse_sums(self, shift: int) -> Integers:
        """Return the sums of each row's k smallest ends, each rounded up to coarse units."""
        entries = _up(np.where(np.isinf(self.kept), 0.0, self.kept).astype(np.int64), shift)
        return np.asarray(entries.astype(np.int64).sum(axis=1))

    def _keeping(self, candidates: Array) -> SmallestEnds:
        most = self.kept.shape[1]
        kept = np.sort(candidates, axis=1)[:, :most]
        kept[np.arange(most) >= self.k[:, None]] = np.inf
        return SmallestEnds(self.k, kept)


def _packed(place: Integers, values: Array, fill: Array) -> tuple[Integers, Array]:
    """Put values of each row side by side, in any order.

    Args:
        place: row of each value, shape (n,).
        values: shape (n,).
        fill: shape (rows,), whose largest entry stands where a row has fewer values.

    Returns:
        Numbers of values, shape (rows,), and values, shape (rows, most).
    """
    order = np.argsort(place, kind="stable")
    numbers = np.bincount(place, minlength=len(fill))
    packed = np.full((len(fill), int(numbers.max(initial=0))), fill.max(initial=0.0))
    packed[np.arange(packed.shape[1]) < numbers[:, None]] = values[order]
    return numbers, packed


def _smallest_sums(values: Array, most: int) -> Integers:
    """Return the sums of the 1, 2, ..., ``most`` smallest values of each row, exactly."""
    smallest = (
        np.partition(values, most - 1, axis=1)[:, :most] if most < values.shape[1] else values
    )
    return np.cumsum(np.sort(smallest, axis=1).astype(np.int64), axis=1)


def _up(values: Integers | np.int64, shift: int) -> Array:
    """Return whole numbers divided by 2**shift and rounded up, as float64."""
    return np.asarray(-((-values) >> shift), dtype=np.float64)
