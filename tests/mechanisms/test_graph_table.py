"""Tables on public graphs: privacy by brute force over every edge, planted faults refused, exact
draws.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from reticent.core import AddRemove, Neighborhood, Norm
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.grids.public_graph import PublicGraph
from reticent.grids.shares import WHOLE, factor_below
from reticent.mechanisms import GraphTable
from reticent.noise import AuditSampler
from reticent.training.label_tables import whole_table

GRAPH = PublicGraph.nearest(np.random.default_rng(0).normal(size=(50, 2)), neighbours=3)


def shares_of(epsilon: float, graph: PublicGraph = GRAPH) -> np.ndarray:
    wanted = np.random.default_rng(0).dirichlet(np.full(3, 0.2), graph.size).T
    return whole_table(wanted, lattice=graph, epsilon=epsilon)


def table(epsilon: float = 1.0) -> GraphTable:
    return GraphTable.of(shares_of(epsilon), graph=GRAPH, epsilon=epsilon)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_loss_is_at_most_epsilon_an_edge(epsilon: float) -> None:
    mechanism = table(epsilon)
    logs = np.log(mechanism.probabilities(GRAPH.points))
    hops = GRAPH.hop_counts(GRAPH.points)
    loss = np.abs(logs[:, None] - logs[None]).max(axis=2)
    assert 0.5 * epsilon < loss[hops == 1].max() <= epsilon * (1 + 1e-12)
    assert (loss <= epsilon * hops * (1 + 1e-12) + 1e-15).all()
    assert mechanism.guarantee.epsilon == epsilon
    assert mechanism.guarantee.delta == 0.0
    assert mechanism.guarantee.adjacency == GRAPH.adjacency


def test_an_input_has_the_chances_of_its_nearest_node() -> None:
    mechanism = table()
    asked = np.random.default_rng(4).normal(size=(200, 2))
    nearest = ((asked[:, None] - GRAPH.points[None]) ** 2).sum(axis=2).argmin(axis=1)
    expected = mechanism.shares[:, nearest].T / WHOLE
    assert np.array_equal(mechanism.probabilities(asked), expected)


def test_one_entry_one_unit_off_is_refused() -> None:
    """Two joined nodes; one entry at the most that the other allows, and one unit above."""
    pair = PublicGraph(points=[[0.0], [1.0]], edges=[[0, 1]])
    factor, share = factor_below(1.0), WHOLE // 5
    most = share * factor.numerator >> factor.shift
    for extra, refused in ((0, False), (1, True)):
        first = np.array([most + extra, share])
        shares = np.stack([first, WHOLE - first]).astype(np.uint32)
        if refused:
            with pytest.raises(InvalidInput, match="1 entries are more than e\\^epsilon"):
                GraphTable.of(shares, graph=pair, epsilon=1.0)
        else:
            assert GraphTable.of(shares, graph=pair, epsilon=1.0).classes == 2


def test_an_edge_that_the_table_was_not_made_for_is_refused() -> None:
    mechanism = table()
    logs = np.log(mechanism.probabilities(GRAPH.points))
    loss = np.abs(logs[:, None] - logs[None]).max(axis=2)
    far = tuple(sorted(np.unravel_index(int(loss.argmax()), loss.shape)))
    assert loss.max() > 1.5
    edges = np.array(sorted({*map(tuple, GRAPH.edges.tolist()), tuple(map(int, far))}))
    more = PublicGraph(points=GRAPH.points, edges=edges)
    with pytest.raises(InvalidInput, match="more than e\\^epsilon"):
        GraphTable.of(mechanism.shares, graph=more, epsilon=1.0)


def test_a_column_that_sums_to_one_unit_more_or_less_is_refused() -> None:
    for change in (1, -1):
        shares = shares_of(1.0).astype(np.int64)
        shares[0, 3] += change
        with pytest.raises(InvalidInput, match="1 columns do not sum"):
            GraphTable.of(shares.astype(np.uint32), graph=GRAPH, epsilon=1.0)


def test_another_adjacency_is_refused() -> None:
    shares = shares_of(1.0)
    other = PublicGraph(points=GRAPH.points, edges=GRAPH.edges[1:])
    plain = Neighborhood(Norm.LINF, 1.0, GRAPH.adjacency.space)
    for adjacency in (other.adjacency, plain, AddRemove()):
        with pytest.raises(InvalidParameter, match="expected that of the graph"):
            GraphTable(graph=GRAPH, shares=shares, epsilon=1.0, adjacency=adjacency)


def test_other_tables_are_refused() -> None:
    for shares in (shares_of(2.0), shares_of(1.0)[:, 1:], shares_of(1.0).astype(np.int64)):
        with pytest.raises(InvalidInput):
            GraphTable.of(shares, graph=GRAPH, epsilon=1.0)
    with pytest.raises(InvalidParameter, match="epsilon"):
        GraphTable.of(shares_of(1.0), graph=GRAPH, epsilon=-1.0)


def test_labels_are_drawn_with_the_chances_of_the_table() -> None:
    mechanism = table()
    point = np.tile(GRAPH.points[7], (40_000, 1))
    drawn = mechanism.release(point, sampler=AuditSampler(np.random.default_rng(5)))
    expected = mechanism.probabilities(point[:1])[0] * len(point)
    assert stats.chisquare(np.bincount(drawn, minlength=3), expected).pvalue > 1e-6
