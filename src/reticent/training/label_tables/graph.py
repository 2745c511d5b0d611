"""The best table of label probabilities on a public graph, and a proved bound on every such table.

    maximise  sum over nodes c and labels l of  weights[l, c] p[l, c]
    where     p[., c] is a distribution, and p[l, c] <= e^epsilon p[l, c'] for adjacent nodes.

There are two constraints an edge and label. They are few enough to be kept as they are, with no
blocks of nodes. The method is the one that solves tables on a lattice.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from reticent.core.arrays import Array
from reticent.core.checks import count, finite_array, positive, probability
from reticent.core.errors import InvalidInput
from reticent.grids.public_graph import PublicGraph
from reticent.grids.shares import WHOLE
from reticent.training.label_tables.optimal import ExactTable, simplex
from reticent.training.label_tables.repair import whole_table
from reticent.training.progress import Report, silent

_CHECKED = 50  # iterations between two bounds
_ROUNDOFF = 2.0**-40  # of a bound, relative to the sums that it is made of


def exact_graph_table(
    weights: npt.ArrayLike,
    *,
    graph: PublicGraph,
    epsilon: float,
    iterations: int = 1000,
    close: float = 0.0,
    report: Report = silent,
) -> ExactTable:
    """Return the most worthy exact table on the solver's way to the optimum, and an upper bound.

    Args:
        weights: worth of each answer at each node, shape (labels, nodes), at least 0, not all 0.
            Public.
        graph: the public graph.
        epsilon: above 0.
        iterations: the largest number of iterations of the solver, rounded up to a multiple of 50.
        close: share of the sum of all weights, in [0, 1). No more iterations are made once the
            table is worth this little less than the bound.
        report: a callback that is told the bound every 50 iterations.

    References:
        - Chambolle and Pock (2011), "A first-order primal-dual algorithm for convex problems with
          applications to imaging", doi:10.1007/s10851-010-0251-1.
        - Pock and Chambolle (2011), "Diagonal preconditioning for first order primal-dual
          algorithms in convex optimization", doi:10.1109/ICCV.2011.6126441, lemma 2, the steps.
    """
    worth = finite_array(weights, name="weights", ndim=2, columns=graph.size)
    if worth.min() < 0 or worth.max() <= 0 or len(worth) < 2:
        raise InvalidInput(
            "weights: expected two labels or more, numbers of at least 0, and one above 0"
        )
    total = positive(epsilon, name="epsilon")
    enough = probability(close, name="close") * float(worth.sum())
    rounds = -(-count(iterations, name="iterations") // _CHECKED)
    solver = _Solver(worth, graph, total)
    bound, best = math.inf, None
    for done in range(rounds):
        bound = min(bound, solver.advance())
        report("label table", done + 1, rounds, bound)
        if done % 2 == 0 and done != rounds - 1:
            continue
        table = solver.table()
        shares = whole_table(table, lattice=graph, epsilon=total, weights=worth)
        value = float((worth * shares).sum()) / WHOLE
        if best is None or value > best.worth:
            best = ExactTable(shares, value, float((worth * table).sum()), bound, 0)
        if bound - best.worth <= enough:
            break
    assert best is not None
    return ExactTable(best.shares, best.worth, best.solved, bound, (done + 1) * _CHECKED)


class _Solver:
    """State of the method: probabilities, shape (nodes, labels), and a price of every constraint,
    shape (2 edges, labels). The mean weight of a node is 1.
    """

    def __init__(self, worth: Array, graph: PublicGraph, epsilon: float) -> None:
        nodes, labels = graph.size, len(worth)
        near, far = math.exp(-min(epsilon, 1400.0) / 2), math.exp(min(epsilon, 1400.0) / 2)
        scale = near + far  # constraints are divided by it, so that a large epsilon is no overflow
        first, second = np.concatenate([graph.edges, graph.edges[:, ::-1]]).T
        rows = np.arange(len(first))
        self._constraints = csr_array(
            (
                np.repeat([near / scale, -far / scale], len(first)),
                (np.concatenate([rows, rows]), np.concatenate([first, second])),
            ),
            shape=(len(first), nodes),
        )
        self._prices_at = csr_array(self._constraints.T)
        self._scale = nodes / float(worth.sum())
        self._worth = np.ascontiguousarray(worth.T * self._scale)
        degree = np.bincount(first, minlength=nodes)
        self._step = (1.0 / np.maximum(degree, 1))[:, None]
        self._p = np.full((nodes, labels), 1.0 / labels)
        self._y = np.zeros((len(first), labels))

    def advance(self) -> float:
        """Make some more iterations, and return the bound that holds after them."""
        for _ in range(_CHECKED):
            ascent = self._step * (self._worth - self._prices_at @ self._y)
            moved = simplex(self._p + ascent)
            self._y += self._constraints @ (2.0 * moved - self._p)
            np.maximum(self._y, 0.0, out=self._y)
            self._p = moved
        return self.bound()

    def bound(self) -> float:
        """Return an upper bound on the worth of every table that keeps the constraints, because
        prices of at least 0 only add to it.
        """
        prices = self._prices_at @ self._y
        left = (self._worth - prices).max(axis=1)
        margin = _ROUNDOFF * float(np.abs(left).sum() + np.abs(prices).sum())
        return (float(left.sum()) + margin) / self._scale

    def table(self) -> Array:
        """Return the current table, shape (labels, nodes)."""
        return np.ascontiguousarray((self._p / self._p.sum(axis=1, keepdims=True)).T)
