"""Public graphs: nearest points, edges and hops against brute force; what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.core import Norm
from reticent.core.errors import InvalidInput
from reticent.grids.public_graph import UNCONNECTED, PublicGraph

POINTS = np.random.default_rng(0).normal(size=(60, 3))
VALUES = np.random.default_rng(1).integers(0, 3, 60)


def apart(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.sqrt(((first[:, None] - second[None]) ** 2).sum(axis=2))


def brute_force(neighbours: int, values: np.ndarray | None) -> set[tuple[int, int]]:
    """Edges to the nearest points, or to the nearest of another value, one point at a time."""
    table = apart(POINTS, POINTS)
    edges = set()
    for own in range(len(POINTS)):
        others = [
            other
            for other in np.argsort(table[own])
            if other != own and (values is None or values[other] != values[own])
        ]
        edges |= {(min(own, other), max(own, other)) for other in others[:neighbours]}
    return edges


@pytest.mark.parametrize("neighbours", [1, 4, 59])
def test_points_are_joined_to_the_nearest(neighbours: int) -> None:
    graph = PublicGraph.nearest(POINTS, neighbours=neighbours)
    assert set(map(tuple, graph.edges.tolist())) == brute_force(neighbours, None)


@pytest.mark.parametrize("neighbours", [1, 6])
def test_points_are_joined_to_the_nearest_of_another_value(neighbours: int) -> None:
    graph = PublicGraph.counterfactual(POINTS, VALUES.astype(str), neighbours=neighbours)
    assert set(map(tuple, graph.edges.tolist())) == brute_force(neighbours, VALUES)
    assert (VALUES[graph.edges[:, 0]] != VALUES[graph.edges[:, 1]]).all()


def test_a_point_counts_for_the_nearest_node_whatever_stands_beside_it() -> None:
    graph = PublicGraph.nearest(POINTS, neighbours=2)
    asked = np.random.default_rng(2).normal(size=(500, 3))
    found = graph.cells(asked)
    assert np.array_equal(found, apart(asked, POINTS).argmin(axis=1))
    assert [int(graph.cells(row[None])[0]) for row in asked[:50]] == found[:50].tolist()
    assert graph.cells(np.full((1, 3), 1e300)).shape == (1,)
    assert np.array_equal(graph.cells(POINTS), np.arange(60))
    tied = PublicGraph(points=[[0.0], [2.0]], edges=[[0, 1]])
    assert tied.cells([[1.0]]).tolist() == [0]


def test_a_node_is_the_nearest_to_the_last_unit() -> None:
    """Whole coordinates around 2^26: differences and their squares are exact in double precision
    in any order, while products of coordinates are not; among the nodes are ties, and distances
    that differ by one.
    """
    random = np.random.default_rng(4)
    far = 2**26 + random.integers(0, 2**20, 8)
    nodes = np.unique(far + random.integers(0, 6, (256, 8)), axis=0)
    graph = PublicGraph(points=nodes, edges=[])
    asked = far + random.integers(0, 6, (400, 8))
    squares = ((asked[:, None] - nodes[None]) ** 2).sum(axis=2)
    nearest = np.sort(squares, axis=1)
    assert (nearest[:, 0] == nearest[:, 1]).sum() > 40
    assert (nearest[:, 0] + 1 == nearest[:, 1]).sum() > 40
    assert graph.cells(asked).tolist() == squares.argmin(axis=1).tolist()


@pytest.mark.parametrize("dimension", [3, 17, 64])
def test_no_other_row_has_a_say_in_the_last_bit_of_a_distance(dimension: int) -> None:
    """Rows halfway between two nodes, up to rounding: whatever stands beside them, in batches of
    many sizes, at every place of a batch, the node is that of the row alone.
    """
    random = np.random.default_rng(5)
    nodes = random.normal(size=(40, dimension))
    graph = PublicGraph(points=nodes, edges=[])
    pairs = random.integers(0, 40, (600, 2))
    middle = 0.5 * (nodes[pairs[:, 0]] + nodes[pairs[:, 1]])
    asked = middle * (1 + 2.0**-52 * random.integers(-2, 3, middle.shape))
    alone = np.array([int(graph.cells(row[None])[0]) for row in asked])
    for size in (2, 3, 4, 5, 7, 8, 12, 16, 17, 31, 64, 100, 255, 600):
        for start in range(0, len(asked), size):
            part = slice(start, start + size)
            assert graph.cells(asked[part]).tolist() == alone[part].tolist()
    order = random.permutation(len(asked))
    assert graph.cells(asked[order]).tolist() == alone[order].tolist()
    assert graph.cells(np.asfortranarray(asked)).tolist() == alone.tolist()


def walked(edges: np.ndarray, start: int) -> list[float]:
    """Edges from one node to every other, one ring after the other."""
    around: dict[int, set[int]] = {node: set() for node in range(60)}
    for first, second in edges.tolist():
        around[first].add(second)
        around[second].add(first)
    found, ring, steps = {start: 0}, {start}, 0
    while ring:
        steps += 1
        ring = set().union(*(around[node] for node in ring)) - set(found)
        found.update(dict.fromkeys(ring, steps))
    return [float(found.get(node, UNCONNECTED)) for node in range(60)]


def test_hops_and_the_distance_of_their_vectors_are_those_of_a_walk() -> None:
    graph = PublicGraph.nearest(POINTS, neighbours=2)
    hops = np.array([walked(graph.edges, start) for start in range(60)])
    vectors = graph.hop_counts(POINTS)
    assert np.array_equal(vectors, hops)
    assert np.array_equal(Norm.LINF.between(vectors, vectors), hops)
    joined = {tuple(edge) for edge in graph.edges.tolist()}
    near = np.argwhere(Norm.LINF.between(vectors, vectors) <= graph.adjacency.radius)
    assert {(a, b) for a, b in near.tolist() if a < b} == joined


def test_nodes_that_no_way_connects_are_further_than_any_promise() -> None:
    graph = PublicGraph(points=[[0.0], [1.0], [5.0]], edges=[[0, 1]])
    assert graph.hop_counts([[0.0]]).tolist() == [[0.0, 1.0, UNCONNECTED]]


def test_maxima_are_over_a_node_and_those_it_is_joined_to() -> None:
    graph = PublicGraph.nearest(POINTS, neighbours=3)
    values = np.random.default_rng(3).integers(0, 2**32, 60, dtype=np.uint32)
    near = np.eye(60, dtype=bool)
    near[tuple(graph.edges.T)] = near[tuple(graph.edges.T[::-1])] = True
    expected = [values[row].max() for row in near]
    found = graph.touching_maximum(values)
    assert found.dtype == np.uint32
    assert found.tolist() == expected
    with pytest.raises(InvalidInput, match="values: expected shape"):
        graph.touching_maximum(values[1:])


def test_the_identity_is_that_of_points_and_edges() -> None:
    graph = PublicGraph.nearest(POINTS, neighbours=3)
    assert graph.adjacency == PublicGraph(points=POINTS, edges=graph.edges).adjacency
    moved = POINTS.copy()
    moved[7, 1] = np.nextafter(moved[7, 1], 9)
    assert PublicGraph(points=moved, edges=graph.edges).adjacency != graph.adjacency
    assert PublicGraph(points=POINTS, edges=graph.edges[1:]).adjacency != graph.adjacency


@pytest.mark.parametrize(
    "edges",
    [
        [[1, 0]],
        [[0, 0]],
        [[0, 1], [0, 1]],
        [[1, 2], [0, 1]],
        [[0, 60]],
        [[-1, 1]],
        [[0.0, 1.0]],
        [[0, 1, 2]],
    ],
)
def test_edges_of_another_form_are_refused(edges: list[list[float]]) -> None:
    with pytest.raises(InvalidInput, match="edges"):
        PublicGraph(points=POINTS, edges=edges)
