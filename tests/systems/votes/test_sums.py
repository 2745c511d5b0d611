"""What all sums cost together, and sums of persons. The contract suite has all neighbours of tiny
data sets.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from reticent.core import AddRemove
from reticent.mechanisms import NoisySums, SumBlock
from reticent.systems.votes import sums
from reticent.systems.votes.gradient_regressor import NoisyGradientRegressor
from reticent.systems.votes.noisy_gradient import NoisyGradientClassifier
from reticent.systems.votes.voters import Voters
from tests.systems.votes.tiny import (
    COMMON,
    OTHERS,
    PUBLIC_X,
    PUBLIC_Y,
    RECORDS,
    TWO_LABELS,
    TWO_TARGETS,
    caught,
)

Make = Callable[..., Any]

MODELS: dict[str, Make] = {
    "gradient": lambda **more: NoisyGradientClassifier(steps=3, **COMMON, **more),
    "gradient, stated records": lambda **more: NoisyGradientClassifier(
        steps=2, records=3, **COMMON, **more
    ),
    "two labels, gradient": lambda **more: NoisyGradientClassifier(steps=2, **TWO_LABELS, **more),
    "two targets, gradient": lambda **more: NoisyGradientRegressor(steps=2, **TWO_TARGETS, **more),
}
PUBLIC = {"public_X": PUBLIC_X, "public_y": PUBLIC_Y}


@pytest.fixture(params=MODELS)
def make(request: pytest.FixtureRequest) -> Make:
    return MODELS[request.param]


def test_all_columns_together_cost_one_total(make: Make) -> None:
    """In noises, the squares of how far all blocks of all sums move add up to the total's."""
    model = make()
    here = caught(model, OTHERS, None, **PUBLIC)
    costs = [
        sum(
            np.square(np.linalg.norm(mine - theirs) / sigma)
            for first, second in zip(here.totals, there.totals, strict=True)
            for mine, theirs, sigma in zip(first, second, here.sigmas, strict=True)
        )
        for there in (caught(make(), [*OTHERS, record], None, **PUBLIC) for record in RECORDS)
    ]
    alone = NoisySums(
        blocks=(SumBlock(1, 2.0**20),),
        sums=1,
        epsilon=1.0,
        delta=1e-5,
        adjacency=AddRemove(1),
    )
    allowed = alone.multipliers[0] ** -2
    assert 0.5 * allowed < max(costs) <= allowed * (1 + 1e-6)


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
