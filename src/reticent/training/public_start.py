"""A public start: the point of each record, and the score that public models give it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Arrays, part_of, under
from reticent.core.checks import finite_array
from reticent.core.errors import CorruptBundle, InvalidInput
from reticent.training.public_forest import Forest
from reticent.training.public_models import LEAF
from reticent.training.public_pool import pool_from
from reticent.training.public_space import PublicSpace

KINDS = {"table": 150, "embedding": 400, "picture": 100}
"""Kinds of rows, and how many principal components of each are kept at most."""

OFFSET_STEPS = 2.0**16
"""Grid steps in a log probability of a public start."""

_FARTHEST = 6.0  # standard deviations of public rows
_BINS = 8
_BIN_LENGTH = 1.5
_LEAST_SPREAD = 1e-9
_FARTHEST_OFFSET = 64.0


class Pool(Protocol):
    """Public models of one column of labels, and their offsets of a row."""

    @property
    def width(self) -> int:
        """The number of offsets of a row."""

    def offsets(self, rows: Array) -> Array:
        """Return offsets, shape (n, width), each row's from that row alone."""

    def describe(self) -> Arrays:
        """Return named arrays for a bundle."""


class PublicColumn(Protocol):
    """One column of labels of public rows."""

    def forest(self, scaled: Array) -> Forest | None:
        """Return extremely randomised trees of the rows, or None for a column that is not known."""

    def pooled(self, scaled: Array) -> tuple[Pool, Array]:
        """Return the pool of the rows, and their offsets by models that did not see them."""


@dataclass(frozen=True, eq=False)
class RowDetails:
    """Leaves of public trees, scaled columns and bins of columns, side by side.

    Attributes:
        center, scale: shape (d,), of the columns. A column that public rows hold constant is 0.
        edges: shape (d, bins - 1), rising ends of bins, filled up with infinity.
        table: True to take leaves and bins, False for scaled columns alone.
        forests: extremely randomised trees of public rows, for each column of labels.

    References:
        - Geurts, Ernst and Wehenkel (2006), "Extremely randomized trees",
          doi:10.1007/s10994-006-6226-1.
    """

    center: Array
    scale: Array
    edges: Array
    table: bool
    forests: tuple[Forest, ...]

    @classmethod
    def around(cls, rows: Array, columns: Sequence[PublicColumn], *, table: bool) -> Self:
        """Return the details of public rows.

        Args:
            rows: shape (n, d).
            columns: their labels.
            table: True if rows have columns of many kinds, so that leaves and bins are taken.
        """
        spread = rows.std(axis=0)
        scale = np.where(spread > _LEAST_SPREAD, 1.0 / np.maximum(spread, _LEAST_SPREAD), 0.0)
        edges = np.full((rows.shape[1], _BINS - 1), np.inf)
        found = cls(rows.mean(axis=0), scale, edges, table, ())
        if not table:
            return found
        for at, column in enumerate(rows.T):
            ends = bin_ends(column, _BINS)
            edges[at, : len(ends)] = ends
        scaled = found.scaled(rows)
        forests = tuple(f for column in columns if (f := column.forest(scaled)) is not None)
        return cls(found.center, found.scale, edges, table, forests)

    def scaled(self, rows: Array) -> Array:
        """Return columns in standard deviations of public rows, shape (n, d), cut at 6."""
        with np.errstate(over="ignore"):
            return np.clip((rows - self.center) * self.scale, -_FARTHEST, _FARTHEST)

    def details(self, rows: Array, scaled: Array) -> Array:
        """Return details, shape (n, m), each row's from that row alone.

        Args:
            rows: shape (n, d).
            scaled: the result of ``scaled`` for the same rows.
        """
        if not self.table:
            return scaled
        parts = [*(_in_leaves(forest, scaled) for forest in self.forests), scaled]
        for column, ends in zip(rows.T, self.edges, strict=True):
            ends = ends[np.isfinite(ends)]
            if not len(ends):
                continue
            places = np.searchsorted(ends, column, side="right")
            # Two bins need one coordinate, which tells them apart.
            bins = np.arange(len(ends) + 1) if len(ends) > 1 else np.array([1])
            parts.append(_BIN_LENGTH * (places[:, None] == bins))
        return np.hstack(parts)

    def describe(self) -> Arrays:
        """Return named arrays that ``from_arrays`` reads."""
        found = {"center": self.center, "scale": self.scale, "edges": self.edges}
        found["table"] = np.array([float(self.table)])
        for at, forest in enumerate(self.forests):
            found |= under(f"{at}.", forest.describe())
        return found

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        """Return the details that ``describe`` took apart.

        Raises:
            CorruptBundle, InvalidInput, KeyError: the arrays describe no details.
        """
        center, scale, table = (
            finite_array(arrays[n], name=n, ndim=1) for n in ("center", "scale", "table")
        )
        edges = np.asarray(arrays["edges"], dtype=np.float64)
        if edges.shape != (len(center), _BINS - 1) or np.isnan(edges).any() or len(table) != 1:
            raise CorruptBundle("bundle: ends of its bins do not fit its columns")
        forests = tuple(
            Forest.from_arrays(part_of(arrays, f"{at}."), dimension=len(center))
            for at in range(sum(name.endswith("forest.roots") for name in arrays))
        )
        return cls(center, scale, edges, bool(table[0]), forests)


@dataclass(frozen=True, eq=False)
class PublicStart:
    """The public map from rows to points with the offset of public models beside them.

    **Guarantee.** A record's point and its offset depend on that record and on public rows alone,
    to the last bit. Columns are scaled and cut entry by entry, trees are walked row by row, and
    points are turned by an exact product of whole numbers.

    Attributes:
        row_details: the details of a row.
        space: the space from these to points.
        pools: the public models of each column of labels.
    """

    row_details: RowDetails
    space: PublicSpace
    pools: tuple[Pool, ...]

    @classmethod
    def around(
        cls,
        rows: Array,
        columns: Sequence[PublicColumn],
        *,
        components: int,
        whitening: float,
        table: bool,
    ) -> tuple[Self, Array]:
        """Return the start that public rows give, and their offsets by models that did not see
        them, shape (n, width).

        Args:
            rows: shape (n, d), public.
            columns: their labels.
            components: the largest number of principal components that are kept.
            whitening: the argument of ``PublicSpace.around``.
            table: the argument of ``RowDetails.around``.
        """
        row_details = RowDetails.around(rows, columns, table=table)
        scaled = row_details.scaled(rows)
        details = row_details.details(rows, scaled)
        space = PublicSpace.around(
            details,
            components=min(components, len(rows) - 1),
            whitening=whitening,
            lower_upper=None,
            alike=True,
        )
        pools, held_out = zip(*(column.pooled(scaled) for column in columns), strict=True)
        return cls(row_details, space, tuple(pools)), np.hstack(held_out)

    @property
    def features(self) -> int:
        """The number of columns of a row."""
        return len(self.row_details.center)

    @cached_property
    def parts(self) -> tuple[slice, ...]:
        """The place of each column's offsets among all of a row."""
        ends = np.cumsum([0, *(pool.width for pool in self.pools)]).tolist()
        return tuple(slice(start, end) for start, end in pairwise(ends))

    @cached_property
    def dimension(self) -> int:
        """The number of coordinates of a point, its offsets included."""
        return int(self.space.dimension + self.parts[-1].stop)

    def points(self, rows: Array) -> Array:
        """Return whole numbers, shape (n, dimension): points, then offsets in ``OFFSET_STEPS``.

        Args:
            rows: shape (n, features), finite.
        """
        scaled = self.row_details.scaled(rows)
        found = np.empty((len(rows), self.dimension))
        for begin in range(0, len(rows), 1024):
            part = slice(begin, begin + 1024)
            details = self.row_details.details(rows[part], scaled[part])
            found[part, : self.space.dimension] = self.space.points(details)
        for part, pool in zip(self.parts, self.pools, strict=True):
            found[:, self.space.dimension :][:, part] = offset_steps(pool.offsets(scaled))
        return found

    def arrays(self) -> Arrays:
        """Return named arrays for a bundle.

        Raises:
            InvalidInput: no bundle can hold a model of the pool.
        """
        found = under("turn.", self.space.arrays()) | under("row.", self.row_details.describe())
        for at, pool in enumerate(self.pools):
            found |= under(f"pool.{at}.", pool.describe())
        return found

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        """Return the start that ``arrays`` described.

        Raises:
            CorruptBundle, InvalidInput, KeyError: the arrays describe no start.
        """
        row_details = RowDetails.from_arrays(part_of(arrays, "row."))
        space = PublicSpace.from_arrays(part_of(arrays, "turn."))
        dimension = len(row_details.center)
        columns = len({name.split(".")[1] for name in arrays if name.startswith("pool.")})
        found = tuple(
            pool_from(part_of(arrays, f"pool.{at}."), dimension=dimension) for at in range(columns)
        )
        zero = np.zeros((1, len(row_details.center)))
        if row_details.details(zero, row_details.scaled(zero)).shape[1] != space.features:
            raise InvalidInput("space: expected one direction for each detail of a row")
        return cls(row_details, space, found)


def offset_steps(offsets: npt.ArrayLike) -> Array:
    """Return log probabilities as whole numbers of ``OFFSET_STEPS``, cut to a public range."""
    cut = np.clip(np.asarray(offsets, dtype=np.float64), -_FARTHEST_OFFSET, _FARTHEST_OFFSET)
    return np.asarray(np.rint(cut * OFFSET_STEPS))


def bin_ends(column: Array, bins: int) -> Array:
    """Return rising inner ends of at most so many bins of a public column.

    A column of few values has a bin for each. Bins of others hold about as many rows each.
    """
    values = np.unique(column)
    if len(values) <= bins:
        return np.asarray(0.5 * (values[1:] + values[:-1]))
    return np.unique(np.quantile(column, np.linspace(0.0, 1.0, bins + 1)[1:-1]))


def _in_leaves(trees: Forest, scaled: Array) -> Array:
    single = scaled.astype(np.float32).astype(np.float64)
    places = np.flatnonzero(trees.feature == LEAF)
    found = np.zeros((len(scaled), len(places)))
    rows = np.arange(len(scaled))
    for walk in trees.walks:
        found[rows, np.searchsorted(places, walk(single))] = 1.0
    return found
