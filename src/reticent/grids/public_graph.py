"""A public graph: public points, the edges that join them, and maxima over joined ones.

A point to be protected counts for the public point that is nearest to it. The joined pairs are a
public list, so a condition on all of them is finite and can be checked exactly.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra
from scipy.spatial.distance import cdist

from reticent.core.arrays import Array, Integers
from reticent.core.checks import as_array, count, finite_array
from reticent.core.errors import InvalidInput
from reticent.core.guarantees import Neighborhood
from reticent.core.norms import Norm

_Number = TypeVar("_Number", bound=np.generic)

MOST_NODES = 20_000
"""Larger graphs are refused, since each answer looks at every node."""

UNCONNECTED = 2.0**60
"""Graph distance of nodes that no way connects. At this distance nothing is promised at any
epsilon.
"""

_BLOCK = 2**22  # distances at a time: 32 MiB


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicGraph:
    """Public points and the edges that join them.

    Every point counts for its *node*, the nearest of ``points`` in l2, the first of several. Two
    points are neighbours if their nodes are equal or joined. The *graph distance* of two nodes is
    the number of edges (hops) on the shortest way between them. List a node's distances to every
    node as a vector. The l-infinity distance of two such vectors is the graph distance of the two
    nodes (Fréchet 1910), so neighbours are at most 1 apart in ``hop_counts``. Nodes that no way
    connects are at distance 2^60.

    Attributes:
        points: shape (nodes, dimension), float64, finite. Public.
        edges: shape (m, 2), int64: numbers of joined nodes, the smaller one first, in rising order,
            each pair once. Public.
        origin: digest of the map from a protected input to a point, "" where inputs are points. It
            is part of ``adjacency``, since other maps have other neighbours.

    Raises:
        InvalidInput: anything else, or more than ``MOST_NODES`` nodes.

    Example:
        >>> line = PublicGraph(points=[[0.0], [1.0], [2.0]], edges=[[0, 1], [1, 2]])
        >>> line.cells([[0.4], [0.6], [9.0]]).tolist()
        [0, 1, 2]
        >>> line.hop_counts([[0.4]]).tolist()
        [[0.0, 1.0, 2.0]]
    """

    points: Array
    edges: Integers
    origin: str = ""

    def __post_init__(self) -> None:
        points = finite_array(self.points, name="points", ndim=2)
        if not 2 <= len(points) <= MOST_NODES:
            raise InvalidInput(f"points: expected 2 to {MOST_NODES} nodes, got {len(points)}")
        edges = np.asarray(self.edges)
        if edges.size == 0:
            edges = np.empty((0, 2), dtype=np.int64)
        if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
            raise InvalidInput(
                f"edges: expected whole numbers of shape (m, 2), got {edges.dtype} {edges.shape}"
            )
        edges = edges.astype(np.int64)
        keys = edges[:, 0] * len(points) + edges[:, 1]
        if (
            bool((edges[:, 0] >= edges[:, 1]).any())
            or (len(edges) and (edges.min() < 0 or edges.max() >= len(points)))
            or bool((np.diff(keys) <= 0).any())
        ):
            raise InvalidInput(
                f"edges: expected pairs of different nodes below {len(points)}, the smaller first, "
                "in rising order, each once"
            )
        for name, array in (("points", points.copy()), ("edges", edges)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @classmethod
    def nearest(cls, points: npt.ArrayLike, *, neighbours: int) -> Self:
        """Return the graph that joins each point to those nearest to it, in l2. So two points are
        joined if one is among the nearest of the other.

        Args:
            points: shape (n, dimension), finite, *public*, no two alike.
            neighbours: least number of points that each is joined to, 1 to n - 1.
        """
        nodes, number = _nodes(points, neighbours)
        return cls(points=nodes, edges=_joined(_closest(nodes, nodes, number + 1, skip=True)))

    @classmethod
    def counterfactual(
        cls, points: npt.ArrayLike, values: npt.ArrayLike, *, neighbours: int
    ) -> Self:
        """Return the graph that joins each point to the nearest points of another value of one
        attribute, in l2.

        Args:
            points: shape (n, dimension), finite, *public*, no two alike.
            values: attribute of each point, shape (n,), *public*, at least two different ones.
            neighbours: least number of points that each is joined to, 1 to the number of points of
                other values than the commonest.
        """
        nodes, number = _nodes(points, neighbours)
        given = as_array(values, name="values")
        if given.shape != (len(nodes),):
            raise InvalidInput(f"values: expected {len(nodes)}, one a point, got {given.shape}")
        kinds, which = np.unique(given, return_inverse=True)
        commonest = int(np.bincount(which).max())
        if len(kinds) < 2 or number > len(nodes) - commonest:
            raise InvalidInput(
                f"values, neighbours={number}: expected two values or more, and at most as many "
                f"neighbours as there are points of other values, {len(nodes) - commonest}"
            )
        joined = np.empty((len(nodes), number), dtype=np.int64)
        for kind in range(len(kinds)):
            own, others = np.flatnonzero(which == kind), np.flatnonzero(which != kind)
            joined[own] = others[_closest(nodes[own], nodes[others], number)]
        return cls(points=nodes, edges=_joined(joined))

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.points)

    @property
    def dimension(self) -> int:
        """Number of coordinates of a point."""
        return int(self.points.shape[1])

    @cached_property
    def adjacency(self) -> Neighborhood:
        """The neighbours' definition. Its identity is a digest of points and edges."""
        digest = hashlib.sha256(self.origin.encode())
        for array in (self.points, self.edges):
            plain = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<")))
            digest.update(str(array.shape).encode())
            digest.update(plain.tobytes())
        return Neighborhood(
            Norm.LINF,
            1.0,
            f"hop counts from the nearest of {self.size} public points, on a public graph of "
            f"{len(self.edges)} edges",
            digest.hexdigest(),
        )

    def cells(self, points: npt.ArrayLike) -> Integers:
        """Return the node of each row of ``points`` (shape (n, dimension), finite). It is private
        where the points are.

        Each row is computed alone, so that no other row can change it.

        Raises:
            InvalidInput: wrong shape, NaN or infinity. Values are never shown.
        """
        array = finite_array(
            points, name="points", ndim=2, columns=self.dimension, allow_empty=True
        )
        found = np.empty(len(array), dtype=np.int64)
        rows = max(1, _BLOCK // self.size)
        for start in range(0, len(array), rows):
            apart = cdist(array[start : start + rows], self.points, "sqeuclidean")
            found[start : start + rows] = apart.argmin(axis=1)
        return found

    def touching_maximum(self, values: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
        """Return the largest of ``values`` over each node and those that it is joined to.

        Args:
            values: shape (nodes,).
        """
        if values.shape != (self.size,):
            raise InvalidInput(f"values: expected shape ({self.size},), got {values.shape}")
        starts, around = self._around
        return np.asarray(np.maximum.reduceat(values[around], starts))

    def hop_counts(self, points: npt.ArrayLike) -> Array:
        """Return the graph distances from the node of each row of ``points`` to every node, shape
        (n, nodes). They are private where the points are.
        """
        nodes, which = np.unique(self.cells(points), return_inverse=True)
        first, second = self.edges.T
        matrix = csr_matrix((np.ones(len(first)), (first, second)), shape=(self.size, self.size))
        hops = dijkstra(matrix, directed=False, unweighted=True, indices=nodes)
        hops[~np.isfinite(hops)] = UNCONNECTED
        return np.asarray(hops[which], dtype=np.float64)

    @cached_property
    def _around(self) -> tuple[Integers, Integers]:
        """Start of each node's list, and the lists of the node itself and those it is joined to."""
        own = np.arange(self.size)
        first = np.concatenate([own, self.edges[:, 0], self.edges[:, 1]])
        second = np.concatenate([own, self.edges[:, 1], self.edges[:, 0]])
        order = np.argsort(first, kind="stable")
        return np.searchsorted(first[order], own), second[order]


def _nodes(points: npt.ArrayLike, neighbours: Any) -> tuple[Array, int]:
    nodes = finite_array(points, name="points", ndim=2)
    number = count(neighbours, name="neighbours")
    if number >= len(nodes):
        raise InvalidInput(f"neighbours={number}: expected fewer than the {len(nodes)} points")
    if len(np.unique(nodes, axis=0)) < len(nodes):
        raise InvalidInput("points: expected no two alike; leave out repeated rows")
    return nodes, number


def _closest(own: Array, others: Array, number: int, *, skip: bool = False) -> Integers:
    """Return the numbers of the nearest ``others`` of each row, without the first (the row itself)
    if ``skip``.
    """
    # imported here, so that answers from a finished graph start without scikit-learn
    from sklearn.neighbors import NearestNeighbors

    found = NearestNeighbors(n_neighbors=number).fit(others).kneighbors(own, return_distance=False)
    return np.asarray(found[:, int(skip) :], dtype=np.int64)


def _joined(lists: Integers) -> Integers:
    """Return every pair of a row's number and an entry of the row, once, as ``PublicGraph`` has
    them.
    """
    own = np.repeat(np.arange(len(lists)), lists.shape[1])
    pairs = np.sort(np.stack([own, lists.ravel()], axis=1), axis=1)
    return np.asarray(np.unique(pairs[pairs[:, 0] < pairs[:, 1]], axis=0))
