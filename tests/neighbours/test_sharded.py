"""However records are split, the lists, the samples and the votes are those of one table."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.neighbours import (
    NeighbourSearch,
    Records,
    SampledNeighbours,
    exhaustive,
    label_votes,
)
from reticent.noise import SeededSampler

N = 300


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a shard is several blocks, too, and a sample often suggests too near a distance."""
    monkeypatch.setattr(exhaustive, "_RECORDS", 16)
    monkeypatch.setattr(exhaustive, "_SAMPLE", 16)


def table(seed: int, side: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Few places, so that most distances are shared, and many records are equal."""
    rng = np.random.default_rng(seed)
    points = rng.integers(-side, side + 1, size=(N, 2)).astype(float)
    return points, rng.integers(0, 3, size=N), rng.integers(0, N // 2, size=N)


def split(seed: int, shards: int, points: np.ndarray, votes: np.ndarray, keys: np.ndarray | None):
    """Return another order, and the records in it, cut at any places, some shards of one record."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(N)
    cuts = np.sort(rng.choice(np.arange(1, N), size=shards - 1, replace=False))
    parts = np.split(order, cuts)
    return order, Records.of_blocks(
        ((points[part], votes[part]) for part in parts),
        N,
        None if keys is None else keys[order].tolist(),
        dimension=points.shape[1],
    )


@pytest.mark.parametrize("by_person", [False, True])
@given(seed=st.integers(0, 2**32 - 1), depth=st.integers(1, 40))
@settings(max_examples=6)
def test_any_sharding_gives_the_votes_of_one_table(by_person: bool, seed: int, depth: int) -> None:
    points, votes, keys = table(seed)
    names = keys if by_person else None
    queries = np.random.default_rng(seed + 1).integers(-5, 6, size=(9, 2)).astype(float)

    def tables(records: Records) -> tuple[list[np.ndarray], list[np.ndarray]]:
        search = NeighbourSearch(records)
        # A small probability, so that most lists have to be deepened.
        voters = SampledNeighbours(search, neighbours=5, probability=0.05)
        sampler = SeededSampler(seed)
        # Numbers of units are the order in which they come: only which are equal counts.
        lists = [
            np.c_[records.votes[block.order], block.lengths]
            for block in search.lists(queries, depth=depth, rows=4)
        ]
        drawn = [
            label_votes(voters.draw(block, sampler=sampler), records.votes, classes=3)
            for block in search.lists(queries, depth=depth, rows=4)
        ]
        return lists, drawn

    one = tables(Records.of(points, votes, None if names is None else names.tolist()))
    for shards in (1, 3, 17):
        other = tables(split(seed, shards, points, votes, names)[1])
        for mine, theirs in zip(one, other, strict=True):
            for left, right in zip(mine, theirs, strict=True):
                np.testing.assert_array_equal(left, right)


def test_places_are_those_of_one_table() -> None:
    points, votes, keys = table(3, side=1000)
    one = Records.of(points, votes, keys.tolist())
    order, many = split(4, 17, points, votes, keys)
    np.testing.assert_array_equal(
        points[np.argsort(one.places)], points[order][np.argsort(many.places)]
    )
    np.testing.assert_array_equal(many.votes, one.votes)
    assert many.units is not None
    assert one.units is not None
    same = [units[:, None] == units for units in (many.units, one.units)]
    np.testing.assert_array_equal(*same)
    assert (len(many), many.dimension) == (N, 2)
