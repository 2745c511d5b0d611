"""Lists against brute force in integers, whatever the depth, and the block."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.neighbours import NeighbourSearch, Records


def _records(n: int, d: int, side: int, seed: int = 0) -> Records:
    """Few places, so that most distances are shared."""
    rng = np.random.default_rng(seed)
    return Records.of(
        rng.integers(-side, side + 1, size=(n, d)).astype(float), rng.integers(0, 4, size=n), None
    )


def _brute_force(records: Records, query: np.ndarray) -> list[int]:
    distances = (
        ((records.points.astype(np.int64) - query.astype(np.int64)) ** 2).sum(axis=1).tolist()
    )
    return sorted(range(len(records)), key=lambda place: (distances[place], place))


@pytest.mark.parametrize("depth", [1, 100, 399, 1000])
def test_lists_begin_the_one_order_of_all_records(depth: int) -> None:
    records = _records(400, 3, 5)
    queries = np.random.default_rng(1).integers(-6, 7, size=(17, 3)).astype(float)
    search = NeighbourSearch(records)
    seen = 0
    for block in search.lists(queries, depth=depth, rows=6):
        for row in range(len(block)):
            listed = block.order[row, : block.lengths[row]].tolist()
            assert len(listed) == min(depth, 400)
            assert listed == _brute_force(records, queries[block.first + row])[: len(listed)]
            assert (block.order[row, block.lengths[row] :] == -1).all()
            deeper = search.deeper(block, row, depth=2 * depth).tolist()
            assert deeper[: len(listed)] == listed
            assert len(deeper) == min(2 * depth, 400)
            seen += 1
    assert seen == 17


def test_more_records_than_the_sample_that_suggests_a_distance() -> None:
    records = _records(9000, 4, 30)
    queries = np.array([[0.0, 0, 0, 0], [90, 90, 90, 90]])
    (block,) = NeighbourSearch(records).lists(queries, depth=500)
    for row in range(2):
        listed = block.order[row, : block.lengths[row]].tolist()
        assert len(listed) == 500
        assert listed == _brute_force(records, queries[row])[: len(listed)]


def test_no_records_give_empty_lists() -> None:
    records = Records.of(np.zeros((0, 2)), np.zeros(0, dtype=int), None)
    (block,) = NeighbourSearch(records).lists([[0, 0], [1, 1]], depth=4)
    assert block.order.shape == (2, 0)
    assert block.lengths.tolist() == [0, 0]
