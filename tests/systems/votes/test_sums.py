"""Sums of persons, and records in blocks: each of them once, in their order, and persons whole. The
contract suite has all neighbours of tiny data sets.
"""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from reticent.systems.votes import sums
from reticent.systems.votes.voters import Voters, voters_of


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


@pytest.mark.parametrize("records", [0, 1, 4096, 4097, 10_000])
def test_blocks_hold_every_record_once(records: int) -> None:
    points, codes = np.random.default_rng(0).integers(0, 9, size=(records, 2)), np.arange(records)
    blocks = list(Voters(points.astype(float), codes, None).blocks())
    assert np.array_equal(np.concatenate([block.points for block in blocks]), points)
    assert np.array_equal(np.concatenate([block.codes for block in blocks]), codes)


def test_records_of_a_person_are_in_one_block() -> None:
    voters = voters_of(np.zeros((10_000, 1)), np.zeros(10_000, int), np.arange(10_000) // 3)
    assert [len(block) for block in voters.blocks()] == [10_000]
