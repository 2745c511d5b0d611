"""The solver of tables of label probabilities on a public graph.

    maximise  sum over nodes c and labels l of  weights[l, c] p[l, c]
    where     p[., c] is a distribution, and p[l, c] <= e^epsilon p[l, c'] for adjacent nodes.

There are two constraints an edge and label. They are few enough to be kept as they are, with no
blocks of nodes. The method is the one that solves tables on a lattice.
"""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from reticent.core.arrays import Array
from reticent.grids.public_graph import PublicGraph

CHECKED = 50
"""Iterations between two bounds."""

_ROUNDOFF = 2.0**-40  # of a bound, relative to the sums that it is made of
_Real = TypeVar("_Real", np.float32, np.float64)


class GraphSolver:
    """State of the method: probabilities, shape (nodes, labels), and a price of every constraint,
    shape (2 edges, labels). The mean weight of a node is 1.

    Args:
        worth: worth of each answer at each node, shape (labels, nodes), at least 0, not all 0.
        graph: the public graph.
        epsilon: above 0.
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
        for _ in range(CHECKED):
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


def simplex(points: npt.NDArray[_Real]) -> npt.NDArray[_Real]:
    """Return each row moved to the nearest distribution.

    The threshold that is subtracted is that of the largest k entries whose smallest stays positive
    (Held, Wolfe and Crowder 1974).

    Args:
        points: shape (n, labels), finite, single or double precision.
    """
    ordered = -np.sort(-points, axis=1)
    sums = np.cumsum(ordered, axis=1, dtype=points.dtype)
    sums -= 1
    sums /= np.arange(1, points.shape[1] + 1, dtype=points.dtype)
    last = np.count_nonzero(ordered > sums, axis=1) - 1
    moved = points - np.take_along_axis(sums, np.maximum(last, 0)[:, None], axis=1)
    np.maximum(moved, 0, out=moved)
    return np.asarray(moved)
