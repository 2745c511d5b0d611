"""No record and one record are data sets like any other. The contract asks it of both classifiers;
here are feature maps, and records that come and go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from torch import nn

from reticent.release.fits import not_counted
from reticent.systems import (
    Ball,
    Features,
    IndividualKNNClassifier,
    Neighbours,
    PrivateKNNClassifier,
)

RANDOM = np.random.default_rng(0)
PICTURES = RANDOM.random((20, 8, 8))
X, Y = PICTURES[:3], np.array([1, 0, 1])
COMMON: dict[str, Any] = {"epsilon": 50.0, "delta": 1e-5, "classes": (0, 1)}
MAPS = {
    "identity": Features(range=(0.0, 1.0)),
    "hog": Features(map="hog"),
    "module": Features(map=nn.Sequential(nn.Flatten(), nn.Linear(64, 4)), range=(-9.0, 9.0)),
}


@pytest.fixture(autouse=True)
def nothing_leaves() -> Iterator[None]:
    with not_counted("tests release nothing"):
        yield


@pytest.mark.parametrize("features", MAPS)
@pytest.mark.parametrize("persons", [None, ["a"]])
def test_neighbours_of_any_features_come_to_none(features: str, persons: Any) -> None:
    fixed = PrivateKNNClassifier(
        queries=60,
        neighbours=Neighbours(number=5, sampling_probability=0.5),
        **COMMON,
        features=MAPS[features],
    )
    fixed.fit(X[:0], Y[:0], persons=None if persons is None else [])
    assert set(fixed.simulate(PICTURES, seed=0).values) == {0, 1}
    coming = IndividualKNNClassifier(**COMMON, features=MAPS[features], ball=Ball(share=0.2))
    named = {} if persons is None else {"persons": persons}
    coming.fit(X[:0], Y[:0], **({name: [] for name in named}), public_X=PICTURES)
    assert set(coming.release(PICTURES).values) == {0, 1}
    coming.insert(X[:1], Y[:1], **named)
    assert len(coming.held_) == 1
    assert set(coming.release(PICTURES).values) <= {0, 1}
    if persons is not None:
        coming.forget("a")
        assert len(coming.held_) == 0
        assert set(coming.exact_predict(PICTURES)) == {0}
