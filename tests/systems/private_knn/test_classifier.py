"""The estimator: labels, withheld answers, one total, one charge, and who may not spend it
twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from reticent.core.errors import (
    InvalidParameter,
)
from reticent.datasets import load_digits
from reticent.neighbours import PointGrid
from reticent.systems import Features, Neighbours, PrivateKNNClassifier

DATA = load_digits()
X, Y = DATA.train_images.reshape(-1, 64), DATA.train_labels
PUBLIC, TRUTH = DATA.test_images.reshape(-1, 64), DATA.test_labels
SETTINGS: dict[str, Any] = {
    "epsilon": 4.0,
    "delta": 1e-5,
    "queries": 60,
    "neighbours": Neighbours(number=30, sampling_probability=0.5),
    "classes": range(10),
    "features": Features(range=(0.0, 1.0)),
}


def _fitted(**changes: Any) -> PrivateKNNClassifier:
    return PrivateKNNClassifier(**{**SETTINGS, **changes}).fit(X, Y)


def test_calibrate_gives_more_noise_to_more_queries_and_not_after_the_first_answer() -> None:
    classifier = _fitted()
    before = classifier.plan_.steps.sigma_votes
    classifier.calibrate(epsilon=4.0, delta=1e-5, queries=300)
    assert classifier.plan_.steps.sigma_votes > 1.5 * before
    classifier.release(PUBLIC[:1])
    with pytest.raises(InvalidParameter, match="labels were released already"):
        classifier.calibrate(epsilon=40.0, delta=1e-5, queries=300)


def test_what_is_asked_first_has_no_say_in_how_neighbours_are_compared() -> None:
    """A grid laid around the first queries is as fine as these lie close together, and cuts all
    that lie farther out.
    """
    classifier, other = _fitted(queries=62), _fitted(queries=62)
    near_duplicates = np.stack([PUBLIC[0], PUBLIC[0] + 1e-4])
    classifier.release(near_duplicates)
    assert (
        classifier.grid_.per_unit == other.grid_.per_unit == 2047 / 4
    )  # the box [0, 1]^64 has a half diagonal of 4
    first, second = (
        system.simulate(PUBLIC[:60], seed=4).values.tolist() for system in (classifier, other)
    )
    assert first == second


@pytest.mark.parametrize(
    "changes",
    [
        {"features": None},
        {"features": Features(range=(0.0,))},
        {"features": Features(range=(1.0, 0.0))},
        {"features": Features(range=(np.nan, 1.0))},
        {"features": Features(range=([0.0, 0.0], [1.0, 1.0]))},
        {"features": Features(range=PointGrid.in_ball(np.zeros(3), 1.0))},
    ],
)
def test_the_range_of_features_is_given(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match="range"):
        _fitted(**changes)


def test_keys_of_every_text_and_integer_are_told_apart() -> None:
    keys = [
        "\ud800",
        b"\xed\xa0\x80",
        10**5000,
        -(10**5000),
        np.int8(3),
        "3",
        *range(100, len(X) + 94),
    ]
    assert len(PrivateKNNClassifier(**SETTINGS).fit(X, Y, persons=keys).release(PUBLIC[:2])) == 2
