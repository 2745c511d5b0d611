"""Public bins of columns, which place every number of a row from that number alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Arrays, Integers
from reticent.core.checks import finite_array
from reticent.core.errors import CorruptBundle, InvalidInput
from reticent.training.public_start import bin_ends

_CHOSEN = 0.5
"""Share of an indicator's public value beyond which it is set."""


@dataclass(frozen=True, eq=False)
class PublicBins:
    """The public map from rows to one bin for each column.

    Indicators that stand side by side, of which no public row has two, are one column. Its bins are
    the indicators, and one more for none of them. Where a private row has several, the first
    counts. Numbers beyond the ends fall into the outer bins, so every row has one bin a column.

    **Guarantee.** A record's bins depend on that record and on public rows alone, to the last bit,
    because numbers are only compared.

    Attributes:
        begin: shape (columns,), the first input column of each.
        width: shape (columns,), indicators of each, or 0 for a column of numbers.
        ends: shape (columns, most), rising ends of bins, filled up with infinity. For indicators
            the number beyond which one is set.
        features: the number of input columns.
    """

    begin: Integers
    width: Integers
    ends: Array
    features: int

    @classmethod
    def around(cls, rows: Array, *, bins: int) -> Self:
        """Return the bins of public rows.

        Args:
            rows: shape (n, d), public.
            bins: the largest number of bins of a column of numbers.
        """
        begin, width, ends = [], [], []
        for first, wide in _runs(rows):
            begin.append(first)
            width.append(wide)
            column = rows[:, first : first + max(1, wide)]
            ends.append(column.max(axis=0) * _CHOSEN if wide else bin_ends(column[:, 0], bins))
        return cls(np.array(begin), np.array(width), _filled(ends), rows.shape[1])

    @classmethod
    def of_range(cls, lower: Array, upper: Array, *, bins: int) -> Self:
        """Return bins of one width for each column of a public box.

        Args:
            lower, upper: shape (d,), its ends.
            bins: the number of bins of each column.
        """
        inner = np.linspace(0.0, 1.0, bins + 1)[1:-1]
        ends = [low + (high - low) * inner for low, high in zip(lower, upper, strict=True)]
        none = np.zeros(len(lower), dtype=np.int64)
        return cls(np.arange(len(lower)), none, _filled(ends), len(lower))

    @property
    def dimension(self) -> int:
        """The number of columns that have bins."""
        return len(self.begin)

    @cached_property
    def sizes(self) -> Integers:
        """The number of bins of each column, shape (columns,)."""
        return np.asarray(np.isfinite(self.ends).sum(axis=1) + 1, dtype=np.int64)

    @cached_property
    def starts(self) -> Integers:
        """The place among all bins where those of each column begin, shape (columns,)."""
        return np.asarray(np.cumsum(self.sizes) - self.sizes)

    def points(self, rows: Array) -> Array:
        """Return places among all bins, shape (n, columns), whole numbers.

        Args:
            rows: shape (n, features), finite.
        """
        found = np.empty((len(rows), self.dimension))
        for at, (first, wide) in enumerate(zip(self.begin, self.width, strict=True)):
            ends = self.ends[at][np.isfinite(self.ends[at])]
            if wide:
                chosen = rows[:, first : first + wide] > ends
                places = np.where(chosen.any(axis=1), chosen.argmax(axis=1), wide)
            else:
                places = np.searchsorted(ends, rows[:, first], side="right")
            found[:, at] = places + self.starts[at]
        return found

    def arrays(self) -> Arrays:
        """Return named arrays for a bundle."""
        return {
            "begin": self.begin,
            "width": self.width,
            "ends": self.ends,
            "features": np.array([self.features]),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Return the bins that ``arrays`` described.

        Raises:
            CorruptBundle, InvalidInput, KeyError: the arrays describe no bins.
        """
        begin, width, features = (
            finite_array(arrays[name], name=name, ndim=1) for name in ("begin", "width", "features")
        )
        ends = np.asarray(arrays["ends"], dtype=np.float64)
        last = begin + np.maximum(width, 1)
        known = ends.shape[:1] == begin.shape == width.shape and len(features) == 1
        if not known or np.isnan(ends).any() or min(begin.min(), width.min()) < 0:
            raise CorruptBundle("bundle: ends of its bins do not fit its columns")
        numbers = ends[width == 0]
        falling = (numbers[:, 1:] < numbers[:, :-1]).any()
        if last.max() > features[0] or falling:
            raise InvalidInput("space: expected bins of columns that there are")
        return cls(begin.astype(np.int64), width.astype(np.int64), ends, int(features[0]))


def _runs(rows: Array) -> list[tuple[int, int]]:
    """Return the first input column of each column, and how many indicators it has, or 0."""
    top = rows.max(axis=0)
    indicator = ((rows == 0) | (rows == top)).all(axis=0) & (top >= 0)
    found, at = [], 0
    while at < rows.shape[1]:
        taken = np.zeros(len(rows), dtype=np.int64)
        last = at
        while last < rows.shape[1] and indicator[last]:
            chosen = (rows[:, last] > 0).astype(np.int64)
            if (taken + chosen).max() > 1:
                break
            taken, last = taken + chosen, last + 1
        if last - at > 1:
            found.append((at, last - at))
            at = last
        else:
            found.append((at, 0))
            at += 1
    return found


def _filled(ends: list[Array]) -> Array:
    found = np.full((len(ends), max(1, *(len(each) for each in ends), 1)), np.inf)
    for row, each in zip(found, ends, strict=True):
        row[: len(each)] = each
    return found
