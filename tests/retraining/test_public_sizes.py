"""Neither the number of records, their order nor the block that one is in moves a bit."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import numpy as np
import pytest

from reticent.retraining import (
    ConvexSettings,
    TrainingSettings,
    parameter_intervals,
    record_buckets,
    record_keys,
)
from reticent.retraining.training_network import IntervalNetwork
from reticent.retraining.training_settings import RECORDS_AT_ONCE, TrainingGrids

RUNS: dict[str, dict[str, Any]] = {
    "linear": {"classes": 2},
    "linear, three labels": {"classes": 3, "batches": 2},
    "hidden": {"classes": 2, "hidden": (5,)},
    "hidden, three labels": {"classes": 3, "hidden": (5,), "batches": 2},
}
SIZES = [RECORDS_AT_ONCE - 1, RECORDS_AT_ONCE, RECORDS_AT_ONCE + 1]


def digest(*arrays: np.ndarray) -> str:
    found = sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def settings_of(name: str) -> tuple[TrainingSettings, list[np.ndarray]]:
    settings = TrainingSettings(features=4, epochs=2, **RUNS[name])
    return settings, settings.initial(0 if settings.hidden else None)


@pytest.mark.parametrize("records", SIZES)
@pytest.mark.parametrize("name", RUNS)
def test_intervals_are_those_of_a_set(name: str, records: int) -> None:
    settings, initial = settings_of(name)
    random = np.random.default_rng(records)
    X, labels = random.normal(size=(records, 4)), random.integers(0, settings.classes, records)
    batch = record_buckets(record_keys(X, labels), buckets=settings.batches, purpose="batch")
    found = set()
    for order in (np.arange(records), random.permutation(records)):
        for jobs in (1, 2) if settings.hidden and records == SIZES[1] else (1,):
            intervals = parameter_intervals(
                X[order],
                labels[order],
                settings,
                k_max=2,
                initial=initial,
                batch=batch[order],
                n_jobs=jobs,
            )
            found.add(digest(*intervals.lower, *intervals.upper))
    assert len(found) == 1


@pytest.mark.parametrize("name", RUNS)
def test_what_a_record_adds_is_its_own(name: str) -> None:
    """In a block of any size, at any place in it, and alone."""
    settings, initial = settings_of(name)
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

    def added(places: np.ndarray) -> dict[int, str]:
        factors = network.factors(np.ascontiguousarray(inputs[:, places]), labels[places])
        sides = [
            side
            for part in factors
            for side in (part.row_low, part.row_high, part.column_low, part.column_high)
        ]
        return {
            place: digest(*(side[:, column] for side in sides))
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


@pytest.mark.parametrize("records", [1, 2, 1023, 1024, 1025])
def test_points_of_the_convex_loss_are_each_record_s_own(records: int) -> None:
    random = np.random.default_rng(1)
    X = random.normal(size=(records + 1, 70)) * random.choice([1e-9, 1.0, 1e9], (records + 1, 1))
    settings = ConvexSettings(features=70)
    more = settings.points(X)
    assert digest(settings.points(X[:-1])) == digest(more[:-1])
    order = random.permutation(records + 1)
    assert digest(settings.points(X[order])) == digest(more[order])
