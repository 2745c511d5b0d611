"""Sensitivity of every sum, by brute force over all neighbours of tiny data sets, both ways round:
distances are symmetric, and every pair is looked at.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from reticent.core import AddRemove
from reticent.mechanisms import NoisySums, SumBlock
from reticent.systems.public_reference import PublicReference
from reticent.systems.votes import descent, sums
from reticent.systems.votes.gradient_regressor import NoisyGradientRegressor
from reticent.systems.votes.linear_vote import LinearVoteClassifier
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
    data_sets,
    distances,
    with_one_more,
)

Make = Callable[..., Any]
BOUND = 1 + 1e-12

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


def state(model: Any) -> dict[str, np.ndarray]:
    return {**model.arrays(), **model.space_.arrays()}


def test_one_record_more_moves_a_sum_by_at_most_the_bound(
    make: Make, request: pytest.FixtureRequest
) -> None:
    largest = 0.0
    # Several columns and targets share the sums of one column, which sees pairs of others.
    one_column = request.node.callspec.params["make"] in list(MODELS)[:2]
    for records in data_sets(2 if one_column else 1):
        here = caught(make(), records, None, **PUBLIC)
        for more in with_one_more(records):
            found = distances(here, caught(make(), more, None, **PUBLIC)).max()
            largest = max(largest, found)
    assert 0.9 < largest <= BOUND


def test_a_replaced_record_moves_a_sum_by_at_most_twice_the_bound(make: Make) -> None:
    largest = 0.0
    for rest in data_sets(1):
        made = [
            caught(make(counting="replace"), [*rest, record], None, **PUBLIC) for record in RECORDS
        ]
        for one in made:
            largest = max(largest, *(distances(one, other).max() for other in made))
    assert 1.2 < largest <= 2 * BOUND
    mechanisms = [make(counting=counting) for counting in ("replace", "add-remove")]
    sigmas = [caught(model, OTHERS, None, **PUBLIC).mechanism.sigmas[0] for model in mechanisms]
    assert sigmas[0] >= 2 * sigmas[1] * (1 - 0.01)  # the count takes up to a hundredth


def test_all_records_of_a_person_move_a_sum_by_at_most_the_bound(make: Make) -> None:
    largest = 0.0
    for records in data_sets(1):
        own = [f"p{place}" for place in range(len(records))]
        here = caught(make(), records, own, **PUBLIC)
        for size in (1, 2, 5):
            for record in RECORDS:
                more = [*records, *([record] * size), RECORDS[0]]
                keys = [*own, *(["new"] * (size + 1))]
                found = distances(here, caught(make(), more, keys, **PUBLIC)).max()
                largest = max(largest, found)
    assert 0.9 < largest <= BOUND


def test_what_is_learned_depends_on_released_sums_and_public_things_alone(make: Make) -> None:
    """The stand-in "releases" the same numbers whatever the records are: so must be the model."""
    models = []
    for records in ([*OTHERS, RECORDS[0]], [*OTHERS, *RECORDS, *RECORDS]):
        model = make()
        caught(model, records, None, **PUBLIC)
        models.append(state(model))
    for name, array in models[0].items():
        assert np.array_equal(array, models[1][name]), name


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


def test_a_mean_over_the_private_number_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    class Private(descent.NoisyCount):
        def add(self, noisy: Any) -> None:
            self.records = float(size)

    monkeypatch.setattr(descent, "NoisyCount", Private)
    found = []
    for records in ([*OTHERS, RECORDS[0]], [*OTHERS, *RECORDS]):
        size = len(records)
        model = NoisyGradientClassifier(steps=3, **COMMON)
        caught(model, records, None, **PUBLIC)
        found.append(model.weights_)
    assert not np.array_equal(*found)


QUERIES = [[0.1, 0.0], [3.0, 1.0], [-1e6, 5.0]]


@pytest.fixture(params=["alone", "beside public models"])
def voting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Make:
    """A linear vote; and one beside public models, which are made once for all records."""
    if request.param == "alone":
        return lambda **more: LinearVoteClassifier(answers=3, **COMMON, **more)
    reference = PublicReference(
        models=[LogisticRegression(C=9.0)], rows="embedding", weight=0.4, records=2
    )
    started = reference.start(PUBLIC_X, PUBLIC_Y, 3)
    monkeypatch.setattr(PublicReference, "start", lambda *given: started)
    return lambda **more: LinearVoteClassifier(answers=3, features=reference, **COMMON, **more)


def query_sums(model: Any, records: list[Any], keys: Any = None) -> np.ndarray:
    rows, labels = ([record[part] for record in records] for part in (0, 1))
    model.fit(rows, labels, persons=keys, **PUBLIC)
    return model.vote_table(QUERIES)


def spread(difference: np.ndarray, response: str) -> float:
    """What the noise of a response is calibrated to, in votes, largest over queries."""
    if response == "gaussian":
        return np.linalg.norm(difference, axis=1).max() / (sums.VOTE * sums.centred_length(3))
    return (difference.max(axis=1) - difference.min(axis=1)).max() / sums.VOTE


@pytest.mark.parametrize("response", ["gaussian", "stability"])
def test_one_record_moves_the_votes_on_a_query_by_one_vote(voting: Make, response: str) -> None:
    largest = 0.0
    for records in data_sets(1):
        here = query_sums(voting(response=response), records)
        for more in with_one_more(records):
            there = query_sums(voting(response=response), more)
            largest = max(largest, spread(there - here, response))
    assert 0.95 < largest <= BOUND


@pytest.mark.parametrize("response", ["gaussian", "stability"])
def test_one_person_moves_the_votes_on_a_query_by_one_vote(voting: Make, response: str) -> None:
    here = query_sums(voting(response=response), OTHERS, ["p"])
    largest = 0.0
    for first in RECORDS:
        for second in RECORDS:
            more = [*OTHERS, first, first, second]
            there = query_sums(voting(response=response), more, ["p", "q", "q", "q"])
            largest = max(largest, spread(there - here, response))
    assert 0.9 < largest <= BOUND


@pytest.mark.parametrize("counting", ["add-remove", "replace"])
def test_levels_of_neighbours_differ_by_one_and_are_0_where_labels_differ(
    voting: Make, counting: str
) -> None:
    """What the response to the exact margin rests on, for all neighbours, on all queries."""
    system = voting(response="stability", counting=counting)

    def winner(records: list[Any]) -> tuple[np.ndarray, np.ndarray]:
        found = query_sums(system, records)
        return found.argmax(axis=1), system.response_.levels(found)

    crowd = [*RECORDS[1:3], RECORDS[1], RECORDS[0]]
    flips, steps = 0, 0
    for records in data_sets(2):
        if counting == "replace":
            near = [winner([*records, *crowd, record]) for record in RECORDS]
        else:
            near = [winner(records), *map(winner, with_one_more(records))]
        here = near if counting == "replace" else near[:1]
        for labels, levels in here:
            for others, other_levels in near:
                assert np.abs(levels - other_levels).max() <= 1
                steps += int(np.abs(levels - other_levels).sum())
                flipped = labels != others
                flips += int(flipped.sum())
                assert not levels[flipped].any()
                assert not other_levels[flipped].any()
    assert flips > 20
    assert steps > 5


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
