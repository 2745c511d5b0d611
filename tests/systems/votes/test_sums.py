"""Sums of persons. The contract suite has all neighbours of tiny data sets."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from reticent.systems.votes import sums
from reticent.systems.votes.voters import Voters


def test_one_person_with_many_records_takes_no_more_memory_than_many_persons() -> None:
    rng = np.random.default_rng(0)
    left, right = rng.integers(-9, 9, (3000, 100)) * 1.0, rng.integers(-9, 9, (3000, 50)) * 1.0
    voters = Voters(left, np.zeros(3000, dtype=np.int64), np.array([0]))
    tracemalloc.start()
    found = sums.outer_sum(voters, left, right, lengths=(1e3, 1e3))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 2**24  # the products of 3,000 records take 120 MB
    assert np.array_equal(
        found, sums.clipped((left.T @ right).reshape(1, -1), 1e6)[0].reshape(100, 50)
    )


def test_persons_split_over_blocks_are_cut_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    starts = np.array([0, 3, 4, 9])
    left, right = rng.integers(-9, 9, (12, 2)) * 1.0, rng.integers(-9, 9, (12, 3)) * 1.0
    voters = Voters(left, np.zeros(12, dtype=np.int64), starts)
    whole = sums.outer_sum(voters, left, right, lengths=(20.0, 5.0))
    monkeypatch.setattr(sums, "_AT_ONCE", 6)
    assert np.array_equal(sums.outer_sum(voters, left, right, lengths=(20.0, 5.0)), whole)
    ends = [*starts[1:], 12]
    by_hand = sum(
        sums.clipped((left[a:b].T @ right[a:b]).reshape(1, -1), 100.0).reshape(2, 3)
        for a, b in zip(starts, ends, strict=True)
    )
    assert np.array_equal(whole, by_hand)
