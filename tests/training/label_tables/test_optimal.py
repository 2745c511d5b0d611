"""The optimal table, on lattices and on graphs, against linear programs over all pairs, solved by
HiGHS; and repaired tables, which pass the exact check and lose little.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import lil_matrix

from reticent.grids.lattice import Lattice
from reticent.grids.public_graph import PublicGraph
from reticent.grids.shares import WHOLE, excess
from reticent.training.label_tables import exact_table, repaired, whole_table
from reticent.training.label_tables.optimal import simplex


def grid(shape: tuple[int, ...], reach: int = 1) -> Lattice:
    return Lattice(
        exponent=0,
        lower=(0,) * len(shape),
        shape=shape,
        side=1,
        reach=reach,
        coordinates=tuple(range(len(shape))),
        dimension=len(shape),
    )


def graph_of(nodes: int, neighbours: int) -> PublicGraph:
    points = np.random.default_rng(0).normal(size=(nodes, 2))
    return PublicGraph.nearest(points, neighbours=neighbours)


def touching(cells: Lattice | PublicGraph) -> np.ndarray:
    """All ordered pairs of neighbouring cells."""
    if isinstance(cells, PublicGraph):
        return np.concatenate([cells.edges, cells.edges[:, ::-1]])
    index = np.stack(np.unravel_index(np.arange(cells.size), cells.shape), axis=1)
    apart = np.abs(index[:, None] - index[None]).max(axis=2)
    return np.argwhere((apart > 0) & (apart <= cells.reach))


def best_worth(weights: np.ndarray, neighbouring: Lattice | PublicGraph, epsilon: float) -> float:
    """Worth of the best table: one constraint for each ordered touching pair and label."""
    (labels, cells), pairs = weights.shape, touching(neighbouring)
    ratios = lil_matrix((len(pairs) * labels, cells * labels))
    sums = lil_matrix((cells, cells * labels))
    for row, (first, second) in enumerate(pairs):
        for label in range(labels):
            ratios[row * labels + label, label * cells + first] = 1.0
            ratios[row * labels + label, label * cells + second] = -math.exp(epsilon)
    for cell in range(cells):
        sums[cell, np.arange(labels) * cells + cell] = 1.0
    solved = linprog(
        -weights.ravel(),
        A_ub=ratios.tocsr(),
        b_ub=np.zeros(ratios.shape[0]),
        A_eq=sums.tocsr(),
        b_eq=np.ones(cells),
        bounds=(0, 1),
        method="highs",
    )
    return float(-solved.fun)


def random_weights(lattice: Lattice | PublicGraph, labels: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(labels, 0.3), lattice.size).T * rng.random(lattice.size)


CELLS = [
    *(grid(shape) for shape in ((6,), (4, 3), (3, 3, 2), (1, 5))),
    *(grid(shape, 2) for shape in ((6,), (5, 4))),
    graph_of(40, 2),
    graph_of(60, 5),
]


@pytest.mark.parametrize("lattice", CELLS, ids=lambda cells: f"{type(cells).__name__}-{cells.size}")
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_bound_and_table_enclose_the_linear_program(lattice, epsilon) -> None:
    weights = random_weights(lattice, 3, seed=0)
    best = best_worth(weights, lattice, epsilon)
    found = exact_table(weights, lattice=lattice, epsilon=epsilon, iterations=1500)
    assert best * (1 - 1e-7) <= found.bound <= best * 1.002
    assert found.solved == pytest.approx(best, rel=2e-3)
    assert excess(found.shares, found.shares, lattice=lattice, epsilon=epsilon) == 0
    assert (found.shares.sum(axis=0, dtype=np.uint64) == WHOLE).all()
    assert found.worth == pytest.approx(float((weights * found.shares).sum()) / WHOLE)
    assert 0.985 * best <= found.worth <= best * (1 + 1e-9)


def test_a_complete_graph_leaves_randomised_response() -> None:
    """All nodes are joined, so no two inputs may be told apart by more than e^epsilon."""
    truth = np.arange(20) % 2
    weights = np.stack([truth == 0, truth == 1]) / 20
    found = exact_table(weights, lattice=graph_of(20, 19), epsilon=1.0, iterations=2000)
    assert found.worth == pytest.approx(math.e / (1 + math.e), abs=1e-3)


def test_nodes_without_edges_answer_exactly_but_for_the_least_share() -> None:
    graph = PublicGraph(points=[[0.0], [1.0], [9.0]], edges=[[0, 1]])
    weights = np.array([[1, 1, 0], [0, 0, 1]]) / 3
    found = exact_table(weights, lattice=graph, epsilon=0.5, iterations=200)
    assert found.worth > 0.999
    assert found.shares.min() >= 1


@pytest.mark.parametrize("iterations", [50, 200])
def test_bound_holds_before_convergence(iterations) -> None:
    for seed in range(5):
        lattice = grid((4, 4))
        weights = random_weights(lattice, 4, seed)
        found = exact_table(weights, lattice=lattice, epsilon=1.0, iterations=iterations)
        assert found.bound >= best_worth(weights, lattice, 1.0) * (1 - 1e-7)


def test_projection_is_the_nearest_distribution() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(200, 6)).astype(np.float32) * 2
    moved = simplex(points)
    assert np.abs(moved.sum(axis=1) - 1).max() < 1e-5
    assert moved.min() >= 0
    # optimality: no other distribution makes a smaller angle with points - moved
    gap = points - moved
    best = (gap * moved).sum(axis=1)
    assert (gap.max(axis=1) <= best + 1e-4).all()


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    labels=st.integers(2, 12),
    epsilon=st.sampled_from([1e-3, 0.1, 1.0, 5.0, 12.0, 30.0]),
    sharp=st.sampled_from([1e-3, 0.1, 1.0]),
)
def test_any_table_becomes_one_that_passes(seed, labels, epsilon, sharp) -> None:
    lattice = grid((4, 3, 2))
    wanted = np.random.default_rng(seed).dirichlet(np.full(labels, sharp), lattice.size).T
    shares = whole_table(np.nan_to_num(wanted) + 1e-12, lattice=lattice, epsilon=epsilon)
    assert shares.dtype == np.uint32
    assert shares.min() >= 1
    assert set(shares.sum(axis=0, dtype=np.uint64).tolist()) == {WHOLE}
    assert excess(shares, shares, lattice=lattice, epsilon=epsilon) == 0


def test_a_table_that_passes_stays_as_it_is() -> None:
    lattice = grid((4, 3))
    logs = 0.4 * lattice.center.sum(axis=1)
    odds = np.stack([np.exp(-logs), np.exp(logs)])
    table = odds / odds.sum(axis=0)
    np.testing.assert_allclose(repaired(table, lattice=lattice, epsilon=2.0), table, rtol=1e-12)
    shares = whole_table(table, lattice=lattice, epsilon=2.0)
    np.testing.assert_allclose(shares / WHOLE, table, atol=2e-9)
