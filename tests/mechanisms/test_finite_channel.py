"""Finite channels: privacy by brute force over every two neighbouring nodes, planted faults
refused, exact draws.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from reticent.core import AddRemove, Neighborhood, Norm, Replace
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.grids.lattice import Lattice
from reticent.grids.public_graph import PublicGraph
from reticent.grids.shares import WHOLE, excess, factor_below
from reticent.mechanisms import AnyTwo, FiniteChannel
from reticent.mechanisms.finite_channel import Nodes, whole_shares
from reticent.noise import AuditSampler, SecureSampler
from reticent.training.label_tables import whole_table

NEAR = Neighborhood(Norm.LINF, 0.5, "embedding")


def lattice(reach: int) -> Lattice:
    ends = np.array([[0.0, 0.0], [2.5 / reach - 0.2, 0.9 / reach]])
    return Lattice.over(ends, radius=0.5, tail=0.0, reach=reach)


GRAPH = PublicGraph.nearest(np.random.default_rng(0).normal(size=(50, 2)), neighbours=3)
KINDS: dict[str, Nodes] = {
    "lattice": lattice(1),
    "fine lattice": lattice(2),
    "graph": GRAPH,
    "any two": AnyTwo(5),
}


def adjacency_of(nodes: Nodes) -> Any:
    if isinstance(nodes, PublicGraph):
        return nodes.adjacency
    return Replace(1) if isinstance(nodes, AnyTwo) else NEAR


def shares_of(nodes: Nodes, epsilon: float = 1.0, answers: int = 3) -> np.ndarray:
    wanted = np.random.default_rng(0).dirichlet(np.full(answers, 0.2), nodes.size).T
    return whole_table(wanted, lattice=nodes, epsilon=epsilon)


def channel(nodes: Nodes = KINDS["lattice"], epsilon: float = 1.0, **changes) -> FiniteChannel:
    given = {"nodes": nodes, "epsilon": epsilon, "adjacency": adjacency_of(nodes), **changes}
    return FiniteChannel(**{"shares": shares_of(nodes, epsilon), **given})


def inputs_of(nodes: Nodes) -> np.ndarray:
    if isinstance(nodes, AnyTwo):
        return np.arange(nodes.size)
    if isinstance(nodes, PublicGraph):
        return nodes.points
    points = np.zeros((nodes.size, nodes.dimension))
    points[:, nodes.coordinates] = nodes.center
    return points


def touching(nodes: Nodes) -> np.ndarray:
    """Which nodes are neighbours, shape (nodes, nodes), by the words of the guarantee."""
    if isinstance(nodes, AnyTwo):
        return np.ones((nodes.size, nodes.size), dtype=bool)
    if isinstance(nodes, PublicGraph):
        return nodes.hop_counts(nodes.points) <= 1
    index = np.stack(np.unravel_index(np.arange(nodes.size), nodes.shape), axis=1)
    return np.abs(index[:, None] - index[None]).max(axis=2) <= nodes.reach


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 4.0, 30.0])
@pytest.mark.parametrize("kind", KINDS)
def test_loss_is_at_most_epsilon_between_all_neighbours(kind: str, epsilon: float) -> None:
    made = channel(KINDS[kind], epsilon)
    first, second = np.nonzero(touching(KINDS[kind]))
    shares = made.shares.astype(np.int64)
    worst = max(
        Fraction(int(row[one]), int(row[other]))
        for row in shares
        for one, other in zip(first, second, strict=True)
    )
    with mpmath.workdps(60):
        loss = mpmath.log(mpmath.mpf(worst.numerator) / worst.denominator)
        assert 0.4 * min(epsilon, 22.0) < loss <= epsilon
    assert made.probabilities(inputs_of(KINDS[kind])) == pytest.approx(made.matrix, abs=0)
    assert (made.guarantee.epsilon, made.guarantee.delta) == (epsilon, 0.0)
    assert made.guarantee.adjacency == adjacency_of(KINDS[kind])
    assert made.event.guarantee == made.guarantee
    assert made.rests_on_float64 == (kind == "graph")


def test_neighbours_within_the_radius_have_close_distributions() -> None:
    rng = np.random.default_rng(1)
    points = rng.uniform(-1, 4, (20_000, 2))
    logs = np.log(channel().probabilities(points))
    for hops in (1, 2):
        moved = points + rng.choice([-0.5 * hops, 0.5 * hops], points.shape)
        loss = np.abs(logs - np.log(channel().probabilities(moved))).max()
        assert hops - 0.5 < loss <= hops + 1e-12


def test_an_input_has_the_chances_of_its_nearest_public_row() -> None:
    asked = np.random.default_rng(4).normal(size=(200, 2))
    nearest = ((asked[:, None] - GRAPH.points[None]) ** 2).sum(axis=2).argmin(axis=1)
    made = channel(GRAPH)
    assert np.array_equal(made.probabilities(asked), made.shares[:, nearest].T / WHOLE)


@pytest.mark.parametrize("kind", ["graph", "any two"])
def test_one_entry_one_unit_off_is_refused(kind: str) -> None:
    """Two neighbouring nodes; one entry at the most that the other allows, and one unit above."""
    joined = PublicGraph(points=[[0.0], [1.0]], edges=[[0, 1]])
    pair = joined if kind == "graph" else AnyTwo(2)
    factor, share = factor_below(1.0), WHOLE // 5
    most = share * factor.numerator >> factor.shift
    for extra, refused in ((0, False), (1, True)):
        first = np.array([most + extra, share])
        shares = np.stack([first, WHOLE - first]).astype(np.uint32)
        if refused:
            with pytest.raises(InvalidInput, match="1 entries"):
                channel(pair, shares=shares)
        else:
            assert channel(pair, shares=shares).classes == 2


def test_a_later_change_of_the_array_escapes_no_check() -> None:
    shares = shares_of(lattice(1)).copy()
    made = channel(shares=shares)
    shares[:] = 0
    assert int(made.shares[:, 0].sum(dtype=np.uint64)) == WHOLE
    with pytest.raises(ValueError, match="read-only"):
        made.shares[0, 0] = 1


def test_an_edge_that_the_table_was_not_made_for_is_refused() -> None:
    made = channel(GRAPH)
    logs = np.log(made.matrix)
    loss = np.abs(logs[:, None] - logs[None]).max(axis=2)
    far = tuple(sorted(np.unravel_index(int(loss.argmax()), loss.shape)))
    assert loss.max() > 1.5
    edges = np.array(sorted({*map(tuple, GRAPH.edges.tolist()), tuple(map(int, far))}))
    more = PublicGraph(points=GRAPH.points, edges=edges)
    with pytest.raises(InvalidInput, match=r"e\^epsilon"):
        channel(more, shares=made.shares)


@pytest.mark.parametrize("kind", KINDS)
def test_tables_that_are_no_channel_are_refused(kind: str) -> None:
    nodes, shares = KINDS[kind], shares_of(KINDS[kind])
    for change in (1, -1):
        off = shares.astype(np.int64)
        off[0, 3] += change
        with pytest.raises(InvalidInput, match="1 columns"):
            channel(nodes, shares=off.astype(np.uint32))
    none = np.stack([np.zeros(nodes.size), np.full(nodes.size, WHOLE - 1)]).astype(np.uint32)
    for wrong in (shares[:, 1:], shares.astype(np.int64), shares / WHOLE, shares[:1], none):
        with pytest.raises(InvalidInput):
            channel(nodes, shares=wrong)
    with pytest.raises(InvalidInput, match=r"e\^epsilon"):
        channel(nodes, shares=shares_of(nodes, 2.0))
    with pytest.raises(InvalidParameter, match="epsilon"):
        channel(nodes, 0.0, shares=shares)


def test_neighbours_that_the_nodes_do_not_cover_are_refused() -> None:
    fitted = lattice(1)
    narrow = Lattice(**{**fitted.to_dict(), "side": fitted.side - 1})
    wide = Neighborhood(Norm.LINF, 0.6, "embedding")
    other = PublicGraph(points=GRAPH.points, edges=GRAPH.edges[1:]).adjacency
    plain = Neighborhood(Norm.LINF, 1.0, GRAPH.adjacency.space)
    for nodes, adjacency in (
        (narrow, NEAR),
        (fitted, wide),
        (fitted, AddRemove(1)),
        (GRAPH, other),
        (GRAPH, plain),
        (GRAPH, AddRemove(1)),
    ):
        with pytest.raises(InvalidParameter):
            channel(nodes, shares=shares_of(nodes), adjacency=adjacency)


@pytest.mark.parametrize("kind", KINDS)
def test_a_description_is_read_back_and_checked(kind: str) -> None:
    made, adjacency = channel(KINDS[kind]), adjacency_of(KINDS[kind])
    description = made.describe()
    again = FiniteChannel.from_description(*description, epsilon=1.0, adjacency=adjacency)
    assert np.array_equal(again.shares, made.shares)
    assert np.array_equal(touching(again.nodes), touching(made.nodes))
    with pytest.raises(InvalidInput, match=r"e\^epsilon"):
        FiniteChannel.from_description(*description, epsilon=0.5, adjacency=adjacency)


@pytest.mark.parametrize("kind", KINDS)
def test_answers_have_the_stated_distribution(kind: str) -> None:
    made = channel(KINDS[kind], shares=shares_of(KINDS[kind], answers=4))
    one = inputs_of(KINDS[kind])[2:3]
    drawn = made.release(np.repeat(one, 40_000, axis=0), sampler=AuditSampler(0))
    counts = np.bincount(drawn, minlength=4)
    expected = 40_000 * made.probabilities(one)[0]
    assert stats.chisquare(counts, expected).pvalue > 1e-3
    # power: the same answers against probabilities that are off by a tenth
    wrong = expected * np.where(np.arange(4) == expected.argmax(), 1.1, 1.0)
    assert stats.chisquare(counts, wrong * 40_000 / wrong.sum()).pvalue < 1e-3


def test_draws_follow_the_uniform_integer() -> None:
    """Every integer below 2^32 belongs to one answer, and each answer to as many as its share."""

    class Given(SecureSampler):
        def uniform_integers(self, high):
            return np.array(integers)

    made = channel()
    ends = np.cumsum(made.shares[:, made.nodes.cells([[0.1, 0.1]])[0]].astype(np.int64))
    integers = [0, ends[0] - 1, ends[0], ends[1] - 1, ends[1], WHOLE - 1]
    assert made.release(np.full((6, 2), 0.1), sampler=Given()).tolist() == [0, 0, 1, 1, 2, 2]
    assert channel().release(np.zeros((0, 2)), sampler=SecureSampler()).shape == (0,)
    assert channel(AnyTwo(5)).release([], sampler=SecureSampler()).shape == (0,)


def test_inputs_that_have_no_node_are_refused() -> None:
    with pytest.raises(InvalidInput, match="NaN"):
        channel().release([[0.0, math.nan]], sampler=SecureSampler())
    for nodes in ([5], [-1], [0.5], [[0]]):
        with pytest.raises(InvalidInput, match="nodes"):
            channel(AnyTwo(5)).release(nodes, sampler=SecureSampler())


@settings(max_examples=200, deadline=None)
@given(nodes=st.integers(2, 200), epsilon=st.floats(1e-9, 60))
def test_randomised_response_lies_as_seldom_as_it_may(nodes: int, epsilon: float) -> None:
    shares = FiniteChannel.response(nodes, epsilon=epsilon, adjacency=NEAR).shares
    if (shares == shares[:, :1]).all():  # nothing is told where whole shares could not tell it
        assert epsilon < 1e-4
        return
    right, wrong = int(shares[0, 0]), int(shares[1, 0])
    factor = factor_below(epsilon)
    bound = Fraction(factor.numerator, 2**factor.shift)
    assert wrong >= 1
    assert right <= bound * wrong
    if wrong > 1:  # one unit fewer would break the bound
        assert right + nodes - 1 > bound * (wrong - 1)


def test_randomised_response_has_the_known_chances() -> None:
    for epsilon in (0.5, 2.0, 10.0):
        found = FiniteChannel.response(10, epsilon=epsilon, adjacency=NEAR)
        right = np.exp(epsilon) / (np.exp(epsilon) + 9)
        expected = np.where(np.eye(10) > 0, right, (1 - right) / 9)
        np.testing.assert_allclose(found.matrix, expected, rtol=1e-5)
    # of logits the largest counts, the first of equal ones
    assert found.at(np.zeros((1, 7)), [[0.0, 3.0, 1.0, 3.0]]).argmax() == 1
    for nodes in (1, 1001):
        with pytest.raises(InvalidParameter, match="nodes"):
            FiniteChannel.response(nodes, epsilon=1.0, adjacency=NEAR)


def test_rounding_gives_next_to_nothing_away_and_repairs_what_is_not_private() -> None:
    table = FiniteChannel.response(3, epsilon=2.0, adjacency=NEAR).matrix
    np.testing.assert_allclose(whole_shares(table, epsilon=2.0).T / WHOLE, table, atol=1e-6)
    repaired = whole_shares(np.eye(3) * 0.94 + 0.02, epsilon=0.5)
    assert excess(repaired, repaired, lattice=AnyTwo(3), epsilon=0.5) == 0


def test_the_posterior_is_bayes() -> None:
    joint = np.array([[0.2, 0.1], [0.1, 0.3], [0.05, 0.25]])
    made = FiniteChannel.response(3, epsilon=1.0, adjacency=NEAR)
    for answer in range(3):
        weights = [sum(made.matrix[n, answer] * joint[n, y] for n in range(3)) for y in range(2)]
        assert made.posterior(joint)[answer] == pytest.approx(np.array(weights) / sum(weights))
