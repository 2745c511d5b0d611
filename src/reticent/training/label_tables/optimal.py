"""The best table of label probabilities on a lattice or graph, and a proved bound on all of them.

    maximise  sum over cells c and labels l of  weights[l, c] p[l, c]
    where     p[., c] is a distribution, and p[l, c] <= e^epsilon p[l, c'] for touching cells.

Every two touching cells lie in a common *block*, a box of ``reach`` + 1 cells a side. So the
constraints on pairs say that each block B and label l has a level t with e^(-epsilon/2) t <=
p[l, c] <= e^(epsilon/2) t for all cells c of B. In five dimensions these are 64 constraints a cell
in place of 242. The primal-dual hybrid gradient method solves the program, in single precision and
in place. Its dual variables give the bound, in double precision.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.checks import count, finite_array, positive, probability
from reticent.core.errors import InvalidInput
from reticent.grids.lattice import Lattice
from reticent.grids.public_graph import PublicGraph
from reticent.grids.shares import WHOLE, Shares
from reticent.training.label_tables.graph import CHECKED, GraphSolver, simplex
from reticent.training.label_tables.repair import whole_table
from reticent.training.progress import Report, silent

Singles = npt.NDArray[np.float32]

_RUN = 512  # numbers in a row that numpy adds up at one go, at least where the lattice has them
_NEVER = np.float32(1e30)
_BALANCE = 0.7  # primal over dual step sizes: how fast the solver converges, and nothing else
_ROUNDOFF = 2.0**-40  # of a bound, relative to the sums it is made of


@dataclass(frozen=True, eq=False)
class ExactTable:
    """A table in whole shares that keeps its constraints exactly, and a bound on all such tables.

    Attributes:
        shares: shape (labels, cells), uint32, multiples of 2^-32.
        worth: sum of the weights times its probabilities.
        solved: the same sum for the solver's table that it was made from, which breaks the
            constraints a little. The difference is the cost of the repair.
        bound: an upper bound on the worth of every table that keeps the constraints.
        iterations: the number of iterations of the solver.
    """

    shares: Shares
    worth: float
    solved: float
    bound: float
    iterations: int


def exact_table(
    weights: npt.ArrayLike,
    *,
    lattice: Lattice | PublicGraph,
    epsilon: float,
    iterations: int = 1000,
    close: float = 0.0,
    report: Report = silent,
) -> ExactTable:
    """Return the most worthy exact table on the solver's way to the optimum, and an upper bound.

    The solver's own tables break their constraints a little. The cost of repairing them neither
    falls nor rises steadily, so the table is repaired every 100 iterations and the best one kept.

    Args:
        weights: worth of each answer in each cell, shape (labels, cells), at least 0, not all 0.
            Public.
        lattice: the lattice of the cells, or a public graph, whose nodes are the cells and whose
            edges join those that touch.
        epsilon: above 0.
        iterations: the largest number of iterations, a multiple of 50 or rounded up to one.
        close: share of the sum of all weights, in [0, 1). No more iterations are made once the
            table is worth this little less than the bound.
        report: a callback that is told the bound every 50 iterations.

    References:
        - Chambolle and Pock (2011), "A first-order primal-dual algorithm for convex problems with
          applications to imaging", doi:10.1007/s10851-010-0251-1.
        - Pock and Chambolle (2011), "Diagonal preconditioning for first order primal-dual
          algorithms in convex optimization", doi:10.1109/ICCV.2011.6126441, lemma 2, the steps.
    """
    worth = finite_array(weights, name="weights", ndim=2, columns=lattice.size)
    if worth.min() < 0 or worth.max() <= 0 or len(worth) < 2:
        raise InvalidInput(
            "weights: expected two labels or more, numbers of at least 0, and one above 0"
        )
    enough = probability(close, name="close") * float(worth.sum())
    total = positive(epsilon, name="epsilon")
    solver: _Solver | GraphSolver
    if isinstance(lattice, PublicGraph):
        solver = GraphSolver(worth, lattice, total)
    else:
        solver = _Solver(worth, lattice, total)
    bound = math.inf
    shares, value, before = None, -math.inf, -math.inf
    rounds = -(-count(iterations, name="iterations") // CHECKED)
    for done in range(rounds):
        bound = min(bound, solver.advance())
        report("label table", done + 1, rounds, bound)
        if done % 2 == 0 and done != rounds - 1:
            continue
        table = solver.table()
        found = whole_table(table, lattice=lattice, epsilon=epsilon, weights=worth)
        gained = float((worth * found).sum()) / WHOLE
        if gained > value:
            shares, value, before = found, gained, float((worth * table).sum())
        if bound - value <= enough:
            break
    assert shares is not None
    return ExactTable(shares, value, before, bound, (done + 1) * CHECKED)


class _Solver:
    """State of the method. Arrays are (outer axes of the lattice, run). The run is the trailing
    axes and the labels, flat, so that a shift by one cell is a shift by a constant.
    """

    def __init__(self, worth: Array, lattice: Lattice, epsilon: float) -> None:
        shape, labels = lattice.shape, len(worth)
        widths = [min(lattice.reach, size - 1) for size in shape]
        tail = 1
        while tail < len(shape) and math.prod(shape[-tail:]) * labels < _RUN:
            tail += 1
        outer = len(shape) - tail
        strides = [math.prod(shape[axis + 1 :]) * labels for axis in range(len(shape))]
        self._labels = labels
        self._view = (*shape[:outer], math.prod(shape[outer:]) * labels)
        blocks = [size - width for size, width in zip(shape[:outer], widths[:outer], strict=True)]
        self._scale = lattice.size / float(worth.sum())
        self._worth = np.ascontiguousarray(worth.T * self._scale)  # mean weight of a cell is 1
        self._gain = self._worth.astype(np.float32).reshape(self._view)
        near, far = math.exp(-epsilon / 4), math.exp(epsilon / 4)
        self._near, self._far, self._top = near, far, math.exp(-epsilon / 2)
        corners = math.prod(width + 1 for width in widths)
        self._dual_step = np.float32(_BALANCE / (near + far))
        self._step = np.float32(1.0 / (_BALANCE * corners * (near + far)))
        self._offsets = []
        for shift in itertools.product(*(range(width + 1) for width in widths)):
            slices = tuple(slice(s, s + n) for s, n in zip(shift[1:outer], blocks[1:], strict=True))
            flat = sum(s * stride for s, stride in zip(shift[outer:], strides[outer:], strict=True))
            first = shift[0] if outer else 0
            self._offsets.append((first, slices, flat))
        self._slabs = blocks[0] if outer else 1
        self._outer = outer
        run = self._view[-1]
        self._block_view = (*blocks, run)
        valid = np.ones(shape[outer:], dtype=np.bool_)
        for axis, width in enumerate(widths[outer:]):
            valid[(*[slice(None)] * axis, slice(shape[outer + axis] - width, None))] = False
        self._invalid = ~np.repeat(valid.reshape(-1), labels)
        self._p = np.full(self._view, 1.0 / labels, dtype=np.float32)
        self._t = np.full(self._block_view, self._top / labels, dtype=np.float32)
        self._y = [
            [
                tuple(np.zeros((*blocks[1:], run - flat), dtype=np.float32) for _ in range(2))
                for _, _, flat in self._offsets
            ]
            for _ in range(self._slabs)
        ]
        self._above, self._below = np.zeros_like(self._p), np.zeros_like(self._p)
        self._block_above, self._block_below = np.zeros_like(self._t), np.zeros_like(self._t)

    def advance(self) -> float:
        """Make some more iterations, and return the bound that holds after them."""
        for _ in range(CHECKED):
            self.step()
        return self.bound()

    def step(self) -> None:
        """Make one iteration: tables and levels, then the prices of their constraints."""
        near, far = np.float32(self._near), np.float32(self._far)
        ascent: Singles = self._step * (self._gain - near * self._above + far * self._below)
        projected = simplex((self._p + ascent).reshape(-1, self._labels)).reshape(self._view)
        ahead = 2 * projected - self._p
        self._p = projected
        level = self._t + self._step * (far * self._block_above - near * self._block_below)
        np.clip(level, 0, np.float32(self._top), out=level)
        level_ahead = 2 * level - self._t
        self._t = np.asarray(level, dtype=np.float32)
        near_p, far_p = self._dual_step * near * ahead, self._dual_step * far * ahead
        near_t, far_t = self._dual_step * near * level_ahead, self._dual_step * far * level_ahead
        near_t[..., self._invalid], far_t[..., self._invalid] = -_NEVER, _NEVER
        for total in (self._above, self._below, self._block_above, self._block_below):
            total.fill(0)
        # numpy compares with an array of zeros four times as fast as with one zero
        zeros = np.zeros_like(self._t[0] if self._outer else self._t)
        for slab, prices in enumerate(self._y):
            for (first, slices, flat), (above, below) in zip(self._offsets, prices, strict=True):
                place, block, size = self._places(slab, first, slices, flat)
                above += near_p[place]
                above -= far_t[block][..., :size]
                np.maximum(above, zeros[..., :size], out=above)
                self._above[place] += above
                self._block_above[block][..., :size] += above
                below += near_t[block][..., :size]
                below -= far_p[place]
                np.maximum(below, zeros[..., :size], out=below)
                self._below[place] += below
                self._block_below[block][..., :size] += below

    def _places(
        self, slab: int, first: int, slices: tuple[slice, ...], flat: int
    ) -> tuple[tuple[int | slice, ...], tuple[int, ...], int]:
        size, end = self._view[-1] - flat, slice(flat, None)
        if not self._outer:
            return (end,), (), size
        return (slab + first, *slices, end), (slab,), size

    def bound(self) -> float:
        """Return an upper bound on the worth of every table that keeps the constraints.

        For prices y >= 0, sum over cells of max_l (weights - far-reaching prices) is one, if for
        every block and label far times the prices above is at most near times those below, so that
        levels gain nothing. Each block's prices are scaled down to make both equal. The rest that
        rounding leaves is charged.
        """
        above = self._far * self._block_above.astype(np.float64)
        below = self._near * self._block_below.astype(np.float64)
        least = np.minimum(above, below)
        keep_above = np.divide(least, above, out=np.zeros_like(above), where=above > 0)
        keep_below = np.divide(least, below, out=np.zeros_like(below), where=below > 0)
        prices = np.zeros(self._view)
        gain = np.zeros(self._block_view)
        for slab, pairs in enumerate(self._y):
            for (first, slices, flat), (high, low) in zip(self._offsets, pairs, strict=True):
                place, block, size = self._places(slab, first, slices, flat)
                y = high * keep_above[block][..., :size]
                prices[place] += self._near * y
                gain[block][..., :size] += self._far * y
                y = low * keep_below[block][..., :size]
                prices[place] -= self._far * y
                gain[block][..., :size] -= self._near * y
        # no best table needs a level above e^(-epsilon/2)
        rest = self._top * float(np.maximum(gain, 0).sum())
        left = (self._worth - prices.reshape(-1, self._labels)).max(axis=1)
        margin = _ROUNDOFF * float(np.abs(left).sum() + np.abs(prices).sum())
        return (float(left.sum()) + rest + margin) / self._scale

    def table(self) -> Array:
        """Return the current table, shape (labels, cells)."""
        p = self._p.reshape(-1, self._labels).astype(np.float64).T
        return np.ascontiguousarray(p / p.sum(axis=0))
