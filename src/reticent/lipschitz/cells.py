"""Exact search at a public cost, over cells of the public box that are searched beforehand.

The bound over a region is the largest value of a cell that the region touches.
"""

from __future__ import annotations

import heapq
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.core.arrays import Array
from reticent.core.errors import UnsupportedNorm
from reticent.core.norms import Norm
from reticent.core.regions import Box
from reticent.grids.arithmetic import Interval
from reticent.lipschitz.bounds import LipschitzBound, Output, Region, slices
from reticent.lipschitz.exact_patterns import ReluChain
from reticent.lipschitz.exact_search import Goal, PatternSearch
from reticent.lipschitz.layered import direct_bound
from reticent.networks.network import Network

_ENTRIES = 2**20
_RELATIVE = 2.0**-20

Cell = tuple[Array, Array]
"""The ends of a closed box in whole steps of the grid, shape (d,) each."""


class CellBound(LipschitzBound):
    """Exact search over the cells of a public partition, for ReLU networks of few inputs and
    l-infinity balls.

    Before any point is seen, the public box is halved into ``cells`` cells, the steepest and
    largest first. Each cell is searched for its exact Lipschitz constant. A search that is not done
    after ``nodes`` partial patterns leaves the upper bound that it has proved. The bound over a
    region is the largest value of a cell that it touches, or the value of ``LayeredBound``
    (``EnumerationBound`` for one hidden layer), whichever is less. A subclass with a ``kind`` of
    its own may have other budgets.

    Args:
        network: linear layers with ReLU between them, at most 14 inputs. It pays for up to four.
        domain: the public box of its inputs.
        input_norm: l-infinity.
        output: l1 (up to 12 outputs), linf or "spread".

    Raises:
        UnsupportedNetwork: the network is no chain of linear layers and ReLU.
        UnsupportedNorm: balls are l1 or l2, inputs or outputs are too many, or outputs are l2.

    Attributes:
        cells: the largest number of cells. There are fewer where the network is constant.
        nodes: the number of partial patterns that are looked at in one cell.

    Guarantee:
        Sound and isotone to the last bit, as every ``LipschitzBound``. A larger region touches
        every cell that a smaller one touches, and both bounds that are compared are isotone. The
        cost of a region does not depend on the cells, because all search is done before. A bundle
        that is loaded searches again, so that no value in it has to be trusted.

    Edge cases: a region on the common face of two cells touches both. An affine network has its
    operator norm everywhere.

    Example:
        >>> from reticent.networks import affine_chain
        >>> net = affine_chain(
        ...     [[[1.0], [1.0]], [[1.0, 2.0]]], [[0.0, -1.0], [0.0]]
        ... )  # slope 0, then 1 from 0, then 3 from 1
        >>> class FewCells(CellBound):
        ...     kind, cells, nodes = "few cells", 16, 50
        >>> bound = FewCells(net, domain=Box.cube(1, 4.0), input_norm=Norm.LINF, output=Norm.L1)
        >>> [round(float(u), 4) for u in bound.bound([[-2.0], [0.4], [2.0]], 0.5)]
        [0.0, 1.0, 3.0]

    Utility:
        For deep networks of few inputs and regions that are large beside a cell: .68 of the layered
        bound at radius 1 on a trained 3-16-16-4 network (median), .91 at radius 0.5. The loss is
        the slope in cells that a region touches by a corner. With one hidden layer, or with five
        inputs and as many neurons, there is nothing to gain (docs/exact-search.md, section 4).

    Runtime:
        ``cells`` searches of milliseconds each once (8 s in all for 3-16-16-4), also when a bundle
        is loaded. A region then takes 0.01 ms more than the direct bound (benchmarks/cells.py).

    References:
        - Jordan and Dimakis (2020), "Exactly computing the local Lipschitz constant of ReLU
          networks", arXiv:2003.01219, exact constants by search.
        - Partition, isotonicity and proof: docs/exact-search.md, section 4.

    See Also:
        reticent.lipschitz.ExactBound: the constant of each region, at a cost without a bound.
        reticent.lipschitz.LayeredBound: without a partition.
    """

    kind: ClassVar[str] = "cells"
    cells: ClassVar[int] = 1024
    nodes: ClassVar[int] = 200
    affordable_points: ClassVar[int] = 200
    _asked_at_once: ClassVar[int] = 0

    def __init__(
        self,
        network: Network,
        *,
        domain: Box,
        input_norm: Norm,
        output: Output,
    ) -> None:
        super().__init__(network, domain=domain, input_norm=input_norm, output=output)
        if self.input_norm is not Norm.LINF:
            raise UnsupportedNorm(f"cells: input_norm={self.input_norm.value}; expected linf")
        self._direct = direct_bound(network, domain=domain, input_norm=input_norm, output=output)
        lower, upper = self._grid_domain
        self._chain = ReluChain(
            network,
            domain=Box(lower * self.input_step, upper * self.input_step),
            output=self.output,
        )
        self._lower, self._upper, over = self._partition()
        self._values = np.minimum(
            over, [self._constant(*ends) for ends in zip(self._lower, self._upper, strict=True)]
        )

    @property
    @override
    def input_step(self) -> float:
        return self._direct.input_step

    @property
    @override
    def _rows_at_once(self) -> int:
        return max(1, _ENTRIES // len(self._values))

    @override
    def _bound_region(self, region: Region) -> Array:
        return np.minimum(self._over_cells(region), self._direct.bound_over(region))

    @override
    def at_most(self, region: Region, limit: float) -> npt.NDArray[np.bool_]:
        over = np.concatenate(
            [
                self._over_cells(region.part(rows))
                for rows in slices(len(region), self._rows_at_once)
            ]
        )
        # Both are asked about every region, so that the time does not reveal which one held.
        held = np.minimum(over, self.ceiling) <= limit
        return np.asarray(held | self._direct.at_most(region, limit))

    def _over_cells(self, region: Region) -> Array:
        """Return the largest value of a cell that each region touches, shape (n,)."""
        box = region.box
        touched = np.ones((len(region), len(self._lower)), dtype=np.bool_)
        for axis in range(self._lower.shape[1]):
            touched &= box.upper[:, axis, None] >= self._lower[:, axis]
            touched &= box.lower[:, axis, None] <= self._upper[:, axis]
        return np.asarray(np.where(touched, self._values, 0.0).max(axis=1))

    def _partition(self) -> tuple[Array, Array, Array]:
        """Return the ends of the cells in whole steps, shape (k, d) each, and a direct bound on
        each.

        The cell whose bound times its longest side is largest is cut first, along that side.
        """
        whole: Cell = self._grid_domain
        kept: list[tuple[float, int, Cell, float]] = []  # cells that are not worth a cut
        over = float(self._direct.bound_over(_region([whole], self.input_step))[0])
        heap = [(-np.inf, 0, whole, over)]
        number = 0
        while heap and len(heap) + len(kept) < self.cells:
            taken = heapq.heappop(heap)
            cell = taken[2]
            sides = cell[1] - cell[0]
            axis = int(sides.argmax())
            if sides[axis] < 2 or taken[3] == 0:
                kept.append(taken)
                continue
            parts = halves(cell, axis)
            values = self._direct.bound_over(_region(parts, self.input_step))
            for part, value in zip(parts, values.tolist(), strict=True):
                number += 1
                urgency = -value * float((part[1] - part[0]).max())
                heapq.heappush(heap, (urgency, number, part, value))
        found = sorted(heap + kept, key=lambda entry: entry[1])
        return (
            np.array([entry[2][0] for entry in found]),
            np.array([entry[2][1] for entry in found]),
            np.array([entry[3] for entry in found]),
        )

    def _constant(self, lower: Array, upper: Array) -> float:
        """Return a bound on the Lipschitz constant over one cell, whose ends are in whole steps."""
        step = self.input_step
        search = PatternSearch(
            self._chain,
            (lower + upper) / 2 * step,
            lower * step,
            upper * step,
            Goal.LARGEST,
            relative=_RELATIVE,
        )
        while not search.advance() and search.nodes < self.nodes:
            pass  # whatever it has proved when it stops is a bound
        return min(search.value_bound, self.ceiling)


def _region(cells: list[Cell], step: float) -> Region:
    """Return cells as regions. Their centers are not looked at for l-infinity balls."""
    lower = np.array([cell[0] for cell in cells])
    upper = np.array([cell[1] for cell in cells])
    middle = np.floor((lower + upper) / 2)
    return Region(Interval(lower, upper, step), middle, (upper - middle).max(axis=1, keepdims=True))


def halves(cell: Cell, axis: int) -> list[Cell]:
    """Return both halves of a cell along one coordinate. The cut belongs to both."""
    lower, upper = cell
    below, above = upper.copy(), lower.copy()
    below[axis] = above[axis] = np.floor((lower[axis] + upper[axis]) / 2)
    return [(lower, below), (above, upper)]
