"""Lists, distances and votes against brute force in integers, whatever the block."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from reticent.neighbours import (
    LEAST_WEIGHT,
    WEIGHT_STEPS,
    NeighbourSearch,
    RadiusKernel,
    Records,
    label_votes,
)
from reticent.neighbours.exhaustive import Exhaustive


def _records(n: int, d: int, side: int, seed: int = 0) -> tuple[Records, np.ndarray]:
    """Few places, so that most distances are shared, and points by the place of their record."""
    rng = np.random.default_rng(seed)
    points = rng.integers(-side, side + 1, size=(n, d))
    records = Records.of(points.astype(float), rng.integers(0, 4, size=n), None)
    return records, points[np.argsort(records.places)]


def _brute_force(points: np.ndarray, query: np.ndarray) -> list[int]:
    distances = ((points - query.astype(np.int64)) ** 2).sum(axis=1).tolist()
    return sorted(range(len(points)), key=lambda place: (distances[place], place))


@pytest.mark.parametrize("depth", [1, 100, 399, 1000])
def test_lists_begin_the_one_order_of_all_records(depth: int) -> None:
    records, points = _records(400, 3, 5)
    queries = np.random.default_rng(1).integers(-6, 7, size=(17, 3)).astype(float)
    search = NeighbourSearch(records)
    seen = 0
    for block in search.lists(queries, depth=depth, rows=6):
        for row in range(len(block)):
            listed = block.order[row, : block.lengths[row]].tolist()
            assert len(listed) == min(depth, 400)
            assert listed == _brute_force(points, queries[block.first + row])[: len(listed)]
            assert (block.order[row, block.lengths[row] :] == -1).all()
            deeper = search.deeper(block, row, depth=2 * depth).tolist()
            assert deeper[: len(listed)] == listed
            assert len(deeper) == min(2 * depth, 400)
            seen += 1
    assert seen == 17


def test_more_records_than_the_sample_that_suggests_a_distance() -> None:
    records, points = _records(9000, 4, 30)
    queries = np.array([[0.0, 0, 0, 0], [90, 90, 90, 90]])
    (block,) = NeighbourSearch(records).lists(queries, depth=500)
    for row in range(2):
        listed = block.order[row, : block.lengths[row]].tolist()
        assert len(listed) == 500
        assert listed == _brute_force(points, queries[row])[: len(listed)]


def test_no_records_give_empty_lists() -> None:
    records = Records.of(np.zeros((0, 2)), np.zeros(0, dtype=int), None)
    (block,) = NeighbourSearch(records).lists([[0, 0], [1, 1]], depth=4)
    assert block.order.shape == (2, 0)
    assert block.lengths.tolist() == [0, 0]


@pytest.mark.parametrize(("records", "queries"), [(300, 70), (1, 3), (40, 0)])
def test_within_and_ranked_against_all_distances(records: int, queries: int) -> None:
    rng = np.random.default_rng(records)
    points = rng.integers(-6, 7, size=(records, 3)).astype(np.int16)
    asked = rng.integers(-6, 7, size=(queries, 3)).astype(np.int16)
    everything = Exhaustive.of(points)
    squared = ((asked[:, None, :].astype(int) - points[None].astype(int)) ** 2).sum(axis=2)
    limits = rng.integers(0, 120, size=queries)
    found = list(everything.within(asked, limits))
    assert len(found) == queries
    for row, (places, distances) in enumerate(found):
        assert places.tolist() == np.flatnonzero(squared[row] < limits[row]).tolist()
        assert distances.tolist() == squared[row][places].tolist()
    ranks = (1, max(1, records // 3), records)
    expected = np.sort(squared, axis=1)[:, [rank - 1 for rank in ranks]]
    assert everything.ranked(asked, ranks).tolist() == expected.tolist()


def test_no_records_have_nobody_near() -> None:
    empty = Exhaustive.of(np.zeros((0, 2), dtype=np.int16))
    [(places, squared)] = empty.within(np.zeros((1, 2), dtype=np.int16), np.array([9]))
    assert (len(places), len(squared)) == (0, 0)


def _expected(kernel: RadiusKernel, squared: int) -> int:
    inner, outer = kernel.squared_inner, kernel.squared_radius
    if squared >= outer:
        return 0
    if kernel.power == 0:
        return WEIGHT_STEPS
    share = min(Fraction(1), Fraction(outer - squared, outer - inner))
    steps = int(share * WEIGHT_STEPS)
    if kernel.power == 2:
        steps = steps * steps // WEIGHT_STEPS
    return steps if steps >= LEAST_WEIGHT else 0


@pytest.mark.parametrize("power", [0, 1, 2])
@pytest.mark.parametrize("ends", [(0, 1), (3, 50), (0, 100), (10_000, 2**24)])
def test_weights_are_the_stated_integers(power: int, ends: tuple[int, int]) -> None:
    kernel = RadiusKernel(squared_inner=ends[0], squared_radius=ends[1], power=power)
    squared = np.unique(
        np.concatenate([np.linspace(0, 1.2 * ends[1], 400).astype(np.int64), np.array(ends)])
    )
    found = kernel.weights(squared)
    assert found.tolist() == [_expected(kernel, int(one)) for one in squared]
    assert (np.diff(found) <= 0).all()
    assert set(found[found > 0] >= LEAST_WEIGHT) <= {True}
    assert found[0] == WEIGHT_STEPS


def test_votes_are_counts_of_labels() -> None:
    rng = np.random.default_rng(0)
    labels, chosen = rng.integers(0, 5, size=30), rng.integers(-1, 30, size=(8, 12))
    votes = label_votes(chosen, labels, classes=5)
    for row in range(8):
        assert votes[row].tolist() == [
            sum(labels[place] == c for place in chosen[row] if place >= 0) for c in range(5)
        ]
