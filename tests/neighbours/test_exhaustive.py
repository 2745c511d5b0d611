"""Everybody within a limit, and distances of given rank, against all distances in integers."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.neighbours.exhaustive import Exhaustive


@pytest.mark.parametrize(("records", "queries"), [(300, 70), (1, 3), (40, 0)])
def test_within_and_ranked_against_all_distances(records: int, queries: int) -> None:
    rng = np.random.default_rng(records)
    points = rng.integers(-6, 7, size=(records, 3)).astype(np.float32)
    asked = rng.integers(-6, 7, size=(queries, 3)).astype(np.float32)
    everything = Exhaustive(points)
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
    empty = Exhaustive(np.zeros((0, 2), dtype=np.float32))
    [(places, squared)] = empty.within(np.zeros((1, 2), dtype=np.float32), np.array([9]))
    assert (len(places), len(squared)) == (0, 0)
