"""The best table on a graph against linear programs over all edges, solved by HiGHS."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import lil_matrix

from reticent.grids.public_graph import PublicGraph
from reticent.grids.shares import WHOLE, excess
from reticent.training.label_tables import exact_table


def graph_of(nodes: int, neighbours: int) -> PublicGraph:
    return PublicGraph.nearest(
        np.random.default_rng(0).normal(size=(nodes, 2)), neighbours=neighbours
    )


def best_worth(weights: np.ndarray, graph: PublicGraph, epsilon: float) -> float:
    """Worth of the best table: one constraint for each edge, direction and label."""
    labels, nodes = weights.shape
    pairs = [*graph.edges.tolist(), *graph.edges[:, ::-1].tolist()]
    ratios = lil_matrix((len(pairs) * labels, nodes * labels))
    for row, (first, second) in enumerate(pairs):
        for label in range(labels):
            ratios[row * labels + label, first * labels + label] = 1.0
            ratios[row * labels + label, second * labels + label] = -math.exp(epsilon)
    sums = lil_matrix((nodes, nodes * labels))
    for node in range(nodes):
        sums[node, node * labels : (node + 1) * labels] = 1.0
    found = linprog(
        -weights.T.ravel(),
        A_ub=ratios.tocsr(),
        b_ub=np.zeros(ratios.shape[0]),
        A_eq=sums.tocsr(),
        b_eq=np.ones(nodes),
        bounds=(0, 1),
        method="highs",
    )
    return -float(found.fun)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize(("nodes", "neighbours", "labels"), [(40, 2, 2), (60, 5, 4)])
def test_table_and_bound_hold_the_optimum_between_them(epsilon, nodes, neighbours, labels) -> None:
    graph = graph_of(nodes, neighbours)
    weights = np.random.default_rng(1).dirichlet(np.full(labels, 0.3), nodes).T / nodes
    best = best_worth(weights, graph, epsilon)
    found = exact_table(weights, lattice=graph, epsilon=epsilon, iterations=3000)
    assert found.worth <= best <= found.bound * (1 + 1e-12)
    assert best - found.worth < 0.003
    assert found.bound - best < 0.002
    assert excess(found.shares, found.shares, lattice=graph, epsilon=epsilon) == 0
    assert (found.shares.sum(axis=0, dtype=np.uint64) == WHOLE).all()
    assert found.worth == pytest.approx(float((weights * found.shares).sum()) / WHOLE)


def test_a_complete_graph_leaves_randomised_response() -> None:
    """All nodes are joined, so no two inputs may be told apart by more than e^epsilon."""
    graph = graph_of(20, 19)
    truth = np.arange(20) % 2
    weights = np.stack([truth == 0, truth == 1]) / 20
    found = exact_table(weights, lattice=graph, epsilon=1.0, iterations=2000)
    assert found.worth == pytest.approx(math.e / (1 + math.e), abs=1e-3)


def test_nodes_without_edges_answer_exactly_but_for_the_least_share() -> None:
    graph = PublicGraph(points=[[0.0], [1.0], [9.0]], edges=[[0, 1]])
    weights = np.array([[1, 1, 0], [0, 0, 1]]) / 3
    found = exact_table(weights, lattice=graph, epsilon=0.5, iterations=200)
    assert found.worth > 0.999
    assert found.shares.min() >= 1
