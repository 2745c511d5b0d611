"""The share of each neuron of one hidden layer in s . J t, for every pair of sign vectors, in whole
numbers that are exact in float32.

Let c_j be what neuron j adds when it is on. Its share of the bound is c_j if on, max(0, c_j) if
unstable, 0 if off. For the pair and its negative together,

    max(U, U') = (| sum_j (2 on_j + unstable_j) c_j | + sum_j unstable_j |c_j|) / 2,

because max(0, c) = (|c| + c) / 2. These are two products of neuron masks with fixed tables, half as
wide as one per sign.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.grids.arithmetic import Interval, power_of_two_at_least

Array32 = npt.NDArray[np.float32]

BLOCK = 256
"""Columns (pairs of sign vectors) looked at in one pass."""

ROWS = 512
"""Regions looked at in one pass. With BLOCK it keeps the working arrays in the cache."""


@dataclass(frozen=True, eq=False)
class NeuronTable:
    """Blocks of columns, those that can reach the largest bounds first.

    Attributes:
        blocks: whole multiples of ``unit``, shape (hidden, at most BLOCK) each. The sum of the
            magnitudes of a column is at most 2**22 + hidden, so that every partial sum of the two
            products stays below 2**24.
        reach: twice the largest bound, in units, that any column of this block or a later one can
            give anywhere in the domain. There is one entry more than blocks, which is 0.
        slack: twice what rounding can hide in one active neuron, in units, shape (hidden,).
        unit: a power of two.
    """

    blocks: tuple[Array32, ...]
    reach: Array
    slack: Array
    unit: float

    rows_at_once: ClassVar[int] = ROWS

    @classmethod
    def build(
        cls, first: Array, last: Array, magnitudes: Array, directions: Array, whole: Interval
    ) -> NeuronTable:
        """Return the table of a network with one hidden layer.

        Args:
            first: weights of the first layer, shape (hidden, inputs).
            last: functionals times the weights of the last layer, shape (functionals, hidden).
            magnitudes: the same product of absolute values, against which floating-point error is
                measured.
            directions: input directions, shape (directions, inputs).
            whole: slopes of the hidden layer over the whole domain, shape (1, hidden).
        """
        along = directions @ first.T
        columns = (last[:, None, :] * along[None]).reshape(-1, len(first)).T
        # 2**-44 of the sums of magnitudes is far above the rounding of the products that made the
        # columns.
        error = (
            magnitudes.max(axis=0) * (np.abs(directions) @ np.abs(first).T).max(axis=0) * 2.0**-44
        )
        unit = (
            power_of_two_at_least(max(float(np.abs(columns).max(axis=1).sum()), 2.0**-900))
            * 2.0**-22
        )
        whole_numbers = np.round(columns / unit)
        always_on, never_on = whole.lower[0] == 1.0, whole.upper[0] == 0.0
        steady = whole_numbers[always_on].sum(axis=0)
        varying = whole_numbers[~always_on & ~never_on]
        either = np.abs(2.0 * steady + varying.sum(axis=0)) + np.abs(varying).sum(axis=0)
        order = np.argsort(-either, kind="stable")
        starts = range(0, len(order), BLOCK)
        return cls(
            blocks=tuple(
                whole_numbers[:, order[start : start + BLOCK]].astype(np.float32)
                for start in starts
            ),
            reach=np.append(either[order[list(starts)]], 0.0),
            slack=1.0 + np.ceil(2.0 * error / unit),
            unit=unit,
        )

    def largest(self, slopes: Interval, *, enough: float = np.inf) -> Array:
        """Return the bound for each row of ``slopes`` (shape (n, hidden)), shape (n,).

        A row is finished when no column that is left can raise it, so the result does not depend on
        the blocks.

        Args:
            slopes: ranges of slopes, each 0, 1 or the interval between.
            enough: a number at which a row may also stop, as soon as the side on which its bound
                lies is known.
        """
        twice_on = (slopes.lower + slopes.upper).astype(np.float32)
        unstable = (slopes.upper - slopes.lower).astype(np.float32)
        slack = slopes.upper @ self.slack
        # Whole numbers, so that stopping early cannot disagree with the comparison of the final
        # value by an ulp.
        limit = np.floor(2.0 * enough / self.unit) - slack
        settled = limit if enough < np.inf else np.zeros(len(slack))
        best = np.zeros(len(slack))
        rows = np.arange(len(slack))
        for block, reach in zip(self.blocks, self.reach, strict=False):
            rows = rows[(np.maximum(best, settled)[rows] < reach) & (best <= limit)[rows]]
            if not len(rows):
                break
            values = np.abs(twice_on[rows] @ block)
            values += unstable[rows] @ np.abs(block)
            best[rows] = np.maximum(best[rows], values.max(axis=1))
        return np.asarray((0.5 * (best + slack)) * self.unit)
