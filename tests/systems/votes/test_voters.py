"""Records in blocks: each of them once, in their order, and persons whole."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.systems.votes.voters import Voters, voters_of

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("records", [0, 1, 4096, 4097, 10_000])
def test_blocks_hold_every_record_once(records: int) -> None:
    points, codes = RNG.integers(0, 9, size=(records, 2)), np.arange(records)
    blocks = list(Voters(points.astype(float), codes, None).blocks())
    assert np.array_equal(np.concatenate([block.points for block in blocks]), points)
    assert np.array_equal(np.concatenate([block.codes for block in blocks]), codes)


def test_records_of_a_person_are_in_one_block() -> None:
    voters = voters_of(np.zeros((10_000, 1)), np.zeros(10_000, int), np.arange(10_000) // 3)
    assert [len(block) for block in voters.blocks()] == [10_000]
