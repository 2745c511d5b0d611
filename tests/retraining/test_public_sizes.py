"""Neither the number of records nor the block that one is in moves a bit of what it adds."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import numpy as np
import pytest

from reticent.retraining import TrainingSettings
from reticent.retraining.training_network import IntervalNetwork
from reticent.retraining.training_settings import RECORDS_AT_ONCE, TrainingGrids

RUNS: dict[str, dict[str, Any]] = {
    "linear": {"classes": 2},
    "linear, three labels": {"classes": 3},
    "hidden": {"classes": 2, "hidden": (5,)},
    "hidden, three labels": {"classes": 3, "hidden": (5,)},
}


def digest(*arrays: np.ndarray) -> str:
    found = sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


@pytest.mark.parametrize("name", RUNS)
def test_what_a_record_adds_is_its_own(name: str) -> None:
    """In a block of any size, at any place in it, and alone."""
    settings = TrainingSettings(features=4, epochs=2, **RUNS[name])
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
