"""However records are split, every vote method sums the same integers."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from reticent import (
    LinearVoteClassifier,
    NoisyGradientClassifier,
    PrivateKNNClassifier,
)
from reticent.core.errors import InvalidInput
from reticent.systems import Features, Neighbours
from reticent.tables import Shards
from reticent.tables import shards as shards_module

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((400, 5)), RNG.integers(0, 3, size=400)
PUBLIC_X, PUBLIC_Y = RNG.standard_normal((60, 5)), RNG.integers(0, 3, size=60)
QUERIES = RNG.standard_normal((20, 5))
COMMON: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "classes": (0, 1, 2)}
QUERY_VOTES: dict[str, Callable[[], Any]] = {
    "linear": lambda: LinearVoteClassifier(answers=20, **COMMON),
    "margin": lambda: LinearVoteClassifier(answers=20, response="stability", **COMMON),
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards_module, "_AT_ONCE", 32)


def splits() -> Shards:
    """All records, in another order, in 17 tables of any size."""
    rng = np.random.default_rng(17)
    order = rng.permutation(len(X))
    cuts = np.sort(rng.choice(np.arange(1, len(X)), size=16, replace=False))
    parts = np.split(order, cuts)
    return Shards(tuple(X[part] for part in parts), tuple(Y[part] for part in parts))


@pytest.mark.parametrize("name", QUERY_VOTES)
def test_tables_of_votes_are_those_of_one_table(name: str) -> None:
    make = QUERY_VOTES[name]
    public = {"public_X": PUBLIC_X, "public_y": PUBLIC_Y}
    one = make().fit(X, Y, **public)
    many = make().fit(splits(), **public)
    table = one.vote_table(QUERIES)
    assert table.dtype == np.int64
    assert np.ptp(table) > 0
    np.testing.assert_array_equal(many.vote_table(QUERIES), table)
    # And parts that other machines fitted add up to it.
    split = splits()
    parts = [
        make().fit(rows, labels, **public).vote_table(QUERIES)
        for rows, labels in zip(split.rows, split.labels, strict=True)
    ]
    np.testing.assert_array_equal(np.sum(parts, axis=0), table)
    again = pickle.loads(pickle.dumps(many))
    for seed in range(3):
        mine, *theirs = (model.simulate(QUERIES, seed=seed).values for model in (one, many, again))
        np.testing.assert_array_equal([mine, mine], theirs)


def test_released_models_have_the_same_bits() -> None:
    public = {"public_X": PUBLIC_X, "public_y": PUBLIC_Y, "seed": 5}
    one, many = (
        NoisyGradientClassifier(steps=3, **COMMON).simulate_fit(*rows, **public)
        for rows in ((X, Y), (splits(),))
    )
    for left, right in zip(one.arrays().values(), many.arrays().values(), strict=True):
        np.testing.assert_array_equal(left, right)


def test_private_knn_gives_the_same_answers() -> None:
    def make() -> PrivateKNNClassifier:
        return PrivateKNNClassifier(
            epsilon=2.0,
            delta=1e-5,
            classes=(0, 1, 2),
            queries=20,
            neighbours=Neighbours(number=8, sampling_probability=0.1),
            features=Features(range=(-4.0, 4.0)),
        )

    one, many = make().fit(X, Y), make().fit(splits())
    assert many.n_features_in_ == 5
    for seed in range(3):
        mine, theirs = (model.simulate(QUERIES, seed=seed).values for model in (one, many))
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(one.exact_predict(QUERIES), many.exact_predict(QUERIES))
    keys = np.arange(len(X)) // 2
    keyed = make().fit(Shards((X[:150], X[150:]), (Y[:150], Y[150:])), persons=keys.tolist())
    np.testing.assert_array_equal(
        keyed.simulate(QUERIES, seed=1).values,
        make().fit(X, Y, persons=keys.tolist()).simulate(QUERIES, seed=1).values,
    )


def test_what_shards_cannot_be_used_for_is_refused_before_any_charge() -> None:
    shards = splits()
    makes = [QUERY_VOTES["linear"], lambda: NoisyGradientClassifier(**COMMON)]
    for make in makes:
        for wrong in ({"y": Y}, {"persons": list(range(len(X)))}):
            with pytest.raises(InvalidInput, match="y, persons: expected None with shards"):
                make().fit(shards, public_X=PUBLIC_X, **wrong)
        bad = X.copy()
        bad[399, 4] = np.nan
        with pytest.raises(InvalidInput, match="NaN"):
            make().fit(Shards((X, bad), (Y, Y)), public_X=PUBLIC_X)
    knn = PrivateKNNClassifier(
        epsilon=2.0, delta=1e-5, classes=(0, 1, 2), queries=2, features=Features(range=(-4.0, 4.0))
    )
    with pytest.raises(InvalidInput, match="expected None with shards"):
        knn.fit(shards, Y)
