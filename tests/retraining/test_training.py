"""Parameter intervals hold every retrained model, and nest between neighbours to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from papers.certified.plain_training import plain_training
from reticent.core.errors import CertificationFailed
from reticent.retraining import (
    ParameterIntervals,
    TrainingSettings,
    parameter_intervals,
    record_buckets,
    record_keys,
    training,
)
from reticent.retraining.training_network import IntervalNetwork
from reticent.retraining.training_settings import RECORDS_AT_ONCE, TrainingGrids
from tests.retraining.test_training_search import nested

Records = tuple[np.ndarray, np.ndarray]

CASES: dict[str, dict[str, Any]] = {
    "logistic": {"classes": 2},
    "softmax, momentum, decay": {"classes": 3, "momentum": 0.5, "weight_decay": 0.1},
    "logistic, keyed batches": {"classes": 2, "batches": 3},
    "mlp": {"classes": 2, "hidden": (6,)},
    "mlp, keyed batches, never clipped": {"classes": 2, "hidden": (6,), "batches": 2, "clip": 50.0},
    "two hidden layers, three labels": {
        "classes": 3,
        "hidden": (6, 5),
        "batches": 2,
        "momentum": 0.3,
        "clip": 0.5,
    },
    "logistic, weights of labels": {"classes": 2, "class_weights": (1.0, 0.07)},
    "mlp, weights of three labels": {
        "classes": 3,
        "hidden": (6,),
        "class_weights": (0.3, 1.0, 0.01),
    },
    "replace, weights of labels": {
        "classes": 2,
        "class_weights": (0.4, 1.0),
        "counting": "replace",
    },
    "remove": {"classes": 2, "counting": "remove"},
    "remove, softmax, keyed batches": {"classes": 3, "batches": 2, "counting": "remove"},
    "insert": {"classes": 2, "counting": "insert", "clip": 0.5},
    "insert, mlp": {"classes": 2, "hidden": (6,), "counting": "insert"},
    "replace": {"classes": 2, "counting": "replace"},
    "replace, mlp, keyed batches": {
        "classes": 3,
        "hidden": (5,),
        "batches": 2,
        "counting": "replace",
        "clip": 0.5,
    },
}


def settings_of(name: str) -> TrainingSettings:
    return TrainingSettings(features=3, epochs=3, **CASES[name])


def draw(random: np.random.Generator, records: int, classes: int) -> Records:
    labels = random.integers(0, classes, records)
    return np.round(
        (2.0 * np.eye(3)[labels % 3] + random.normal(size=(records, 3))) * 4096
    ) / 4096, labels


def batches(settings: TrainingSettings, X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return record_buckets(record_keys(X, labels), buckets=settings.batches, purpose="batch")


def changed(
    random: np.random.Generator, data: Records, settings: TrainingSettings, changes: int
) -> Records:
    """``changes`` insertions and removals, or replacements, of ordinary and of extreme records,
    in another order.
    """
    X, labels = data
    for _ in range(changes):
        kinds = {"add-remove": random.integers(0, 2), "remove": 0, "insert": 1, "replace": 2}
        kind = kinds[settings.counting]
        if kind in (0, 2) and len(X):
            out = (
                int(np.abs(X).sum(axis=1).argmax())
                if random.random() < 0.5
                else int(random.integers(len(X)))
            )
            X, labels = np.delete(X, out, axis=0), np.delete(labels, out)
        if kind in (1, 2):
            new = (
                np.round(random.normal(size=(1, 3)) * random.choice([1.0, 5.0, 50.0]) * 4096) / 4096
            )
            X, labels = (
                np.concatenate([X, new]),
                np.append(labels, random.integers(settings.classes)),
            )
    order = random.permutation(len(X))
    return X[order], labels[order]


def certified(settings: TrainingSettings, data: Records, k_max: int) -> ParameterIntervals:
    initial = settings.initial(3 if settings.hidden else None)
    return parameter_intervals(
        *data, settings, k_max=k_max, initial=initial, batch=batches(settings, *data)
    )


def retrained(settings: TrainingSettings, data: Records) -> list[np.ndarray]:
    initial = settings.initial(3 if settings.hidden else None)
    return plain_training(*data, settings, initial=initial, batch=batches(settings, *data))


@pytest.mark.parametrize("case", CASES)
def test_any_partition_of_the_records_gives_the_same_bits(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums over partitions are whole numbers: neither their sizes nor the records' order shows."""
    settings, random = settings_of(case), np.random.default_rng(3)
    X, labels = draw(random, 51, settings.classes)
    one = certified(settings, (X, labels), 3)
    for partitions in (3, 17):
        for name in ("RECORDS_AT_ONCE", "_LINEAR_RECORDS", "_MOVING_AT_ONCE"):
            monkeypatch.setattr(training, name, 51 // partitions)
        order = random.permutation(51)
        many = certified(settings, (X[order], labels[order]), 3)
        for left, right in zip((*one.lower, *one.upper), (*many.lower, *many.upper), strict=True):
            np.testing.assert_array_equal(left, right)


def search_for_misses(name: str, *, sets: int, changes: int, k_max: int = 4) -> int:
    """Retrains ``sets * changes`` times; the number of retrained models checked."""
    settings, random = settings_of(name), np.random.default_rng(7)
    for _ in range(sets):
        data = draw(random, int(random.integers(8, 40)), settings.classes)
        intervals = certified(settings, data, k_max)
        assert intervals.contains(retrained(settings, data), 0)
        for _ in range(changes):
            k = int(random.integers(1, k_max + 1))
            assert intervals.contains(retrained(settings, changed(random, data, settings, k)), k), (
                name
            )
    return sets * changes


@pytest.mark.parametrize("sets", [3, pytest.param(30, marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", CASES)
def test_retrained_models_lie_in_their_intervals(name: str, sets: int) -> None:
    assert search_for_misses(name, sets=sets, changes=20) == 20 * sets


def test_intervals_nest_where_gradients_are_far_above_gamma() -> None:
    """Nearly all records may have to be looked at: removing one that is clipped at gamma pays by
    the rounding of sums alone.
    """
    X = np.array(
        [[-16.0, 14.0], [12.0, -16.0], [-7.0, 11.0], [10.0, 9.0], [-12.0, 6.0], [16.0, -12.0]]
    )
    labels = np.array([3, 3, 4, 2, 0, 1])
    for rate in (1.1958899399742162, *np.random.default_rng(11).uniform(0.5, 2.0, 20).tolist()):
        settings = TrainingSettings(
            features=2, classes=6, epochs=1, clip=0.8311702616647709, learning_rate=rate
        )
        first, second = (
            certified(settings, (X, labels), 5),
            certified(settings, (X[:5], labels[:5]), 5),
        )
        assert nested(first, second)
        assert nested(second, first)


def test_a_network_too_wide_for_exact_sums_is_refused() -> None:
    settings = TrainingSettings(features=2, classes=2, hidden=(2**20,))
    with pytest.raises(CertificationFailed, match="fewer than 12 exact bits"):
        parameter_intervals(
            np.zeros((1, 2)),
            [0],
            settings,
            k_max=0,
            initial=[np.ones((2**20, 3)), np.ones((1, 2**20 + 1))],
        )


@pytest.mark.parametrize("name", ["mlp, keyed batches, never clipped", "logistic"])
def test_workers_give_the_same_bits_and_report_every_distance(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "_LINEAR_AT_ONCE", 3)  # several groups in either case
    monkeypatch.setattr(training, "_NESTED_AT_ONCE", 3)
    random = np.random.default_rng(0)
    X = random.normal(size=(90, 3))
    settings = TrainingSettings(features=3, epochs=2, **CASES[name])
    labels = random.integers(0, 2, 90)
    batch = random.integers(0, settings.batches, 90)
    arguments = {
        "k_max": 6,
        "batch": batch,
        "initial": settings.initial(0 if settings.hidden else None),
    }
    told: list[int] = []
    alone = parameter_intervals(X, labels, settings, **arguments)
    shared = parameter_intervals(X, labels, settings, **arguments, n_jobs=3, report=told.append)
    assert told[-1] == 7
    assert len(told) > 1
    for mine, theirs in zip(alone.lower + alone.upper, shared.lower + shared.upper, strict=True):
        assert mine.tobytes() == theirs.tobytes()


def digests(*arrays: np.ndarray) -> tuple[bytes, ...]:
    return tuple(np.ascontiguousarray(array).tobytes() for array in arrays)


@pytest.mark.parametrize(
    "name", ["logistic", "softmax, momentum, decay", "mlp", "mlp, weights of three labels"]
)
def test_what_a_record_adds_is_its_own(name: str) -> None:
    """In a block of any size, at any place in it, and alone."""
    settings = TrainingSettings(features=4, epochs=2, **CASES[name])
    initial = settings.initial(0 if settings.hidden else None)
    random = np.random.default_rng(0)
    X = random.normal(size=(RECORDS_AT_ONCE, 4))
    labels = random.integers(0, settings.classes, len(X))
    grids = TrainingGrids.build(settings, initial)
    inputs = grids.inputs(X)
    reach = [np.full(start.shape, 3.0) for start in grids.start]
    low, high = (
        [start + side * far for start, far in zip(grids.start, reach, strict=True)]
        for side in (-1.0, 1.0)
    )
    network = IntervalNetwork(grids, low, high)

    def added(places: np.ndarray) -> dict[int, tuple[bytes, ...]]:
        factors = network.factors(np.ascontiguousarray(inputs[:, places]), labels[places])
        sides = [
            side
            for part in factors
            for side in (part.row_low, part.row_high, part.column_low, part.column_high)
        ]
        return {
            place: digests(*(side[:, column] for side in sides))
            for column, place in enumerate(places.tolist())
        }

    whole = added(np.arange(RECORDS_AT_ONCE))
    assert len(set(whole.values())) > RECORDS_AT_ONCE // 2
    for places in (
        np.arange(RECORDS_AT_ONCE - 1),
        random.permutation(RECORDS_AT_ONCE),
        *np.arange(0, RECORDS_AT_ONCE, 101)[:, None],
    ):
        assert added(places).items() <= whole.items()
