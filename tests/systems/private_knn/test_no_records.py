"""No record and one record are data sets like any other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from torch import nn

from reticent.release.fits import not_counted
from reticent.systems import (
    Ball,
    IndividualKNNClassifier,
    Neighbours,
    PrivateKNNClassifier,
    PrivateKNNStudent,
)
from reticent.training.students import StudentConfig

RANDOM = np.random.default_rng(0)
PICTURES = RANDOM.random((20, 8, 8))
X, Y = PICTURES[:3], np.array([1, 0, 1])
COMMON: dict[str, Any] = {"epsilon": 50.0, "delta": 1e-5, "classes": (0, 1)}
MAPS: dict[str, dict[str, Any]] = {
    "identity": {"feature_range": (0.0, 1.0)},
    "hog": {"feature_map": "hog"},
    "upright hog": {"feature_map": "upright hog"},
    "module": {
        "feature_map": nn.Sequential(nn.Flatten(), nn.Linear(64, 4)),
        "feature_range": (-9.0, 9.0),
    },
}


@pytest.fixture(autouse=True)
def nothing_leaves() -> Iterator[None]:
    with not_counted("tests release nothing"):
        yield


@pytest.mark.parametrize("features", MAPS)
@pytest.mark.parametrize("persons", [None, ("a", "b", "a")])
@pytest.mark.parametrize("engine", ["numpy", "faiss"])
@pytest.mark.parametrize("size", [0, 1, 2])
def test_a_classifier_of_neighbours_fits_and_answers(
    features: str, persons: Any, engine: str, size: int
) -> None:
    classifier = PrivateKNNClassifier(
        queries=60,
        neighbours=Neighbours(number=5, sampling_probability=0.5, engine=engine),
        **COMMON,
        **MAPS[features],
    )
    names = None if persons is None else persons[:size]
    classifier.fit(X[:size], Y[:size], persons=names)
    assert set(classifier.release(PICTURES).values) <= {0, 1}
    assert set(classifier.predict(PICTURES)) <= {0, 1}
    assert set(classifier.exact_predict(PICTURES)) <= {0, 1}
    if size == 0:
        assert set(classifier.simulate(PICTURES, seed=0).values) == {0, 1}
        assert len(classifier.card().to_markdown()) > 100


@pytest.mark.parametrize("features", MAPS)
@pytest.mark.parametrize("persons", [None, ("a", "b", "a")])
@pytest.mark.parametrize("public", [False, True])
def test_records_come_to_none(features: str, persons: Any, public: bool) -> None:
    ball = Ball(share=0.2) if public else Ball(radius=100.0)
    classifier = IndividualKNNClassifier(**COMMON, **MAPS[features], ball=ball)
    names = [] if persons is None else list(persons)

    def named(size: int) -> dict[str, Any]:
        return {} if persons is None else {"persons": names[:size]}

    classifier.fit(X[:0], Y[:0], **named(0), **({"public_X": PICTURES} if public else {}))
    assert set(classifier.release(PICTURES).values) == {0, 1}
    classifier.insert(X[:0], Y[:0], **named(0)).insert(X[:1], Y[:1], **named(1))
    assert len(classifier.held_) == 1
    assert set(classifier.release(PICTURES).values) <= {0, 1}
    if persons is not None:
        classifier.forget("a")
        assert len(classifier.held_) == 0
        assert set(classifier.predict(PICTURES)) <= {0, 1}
        assert set(classifier.exact_predict(PICTURES)) == {0}
    classifier.insert(X, Y, **named(3))
    assert set(classifier.exact_predict(PICTURES)) <= {0, 1}


@pytest.mark.parametrize("kind", ["network", "svm", "withheld"])
@pytest.mark.parametrize("size", [0, 1])
def test_a_student_of_none_or_one_record(kind: str, size: int) -> None:
    network = StudentConfig(image_shape=(1, 8, 8), channels=(2, 2), width=4, epochs=1)
    student = PrivateKNNStudent(
        queries=(4, 4),
        neighbours=Neighbours(
            number=5, sampling_probability=0.5, threshold=40.0 if kind == "withheld" else None
        ),
        student="svm" if kind == "svm" else network,
        feature_map="hog",
        random_state=0,
        **COMMON,
    )
    student.fit(X[:size], Y[:size], public=PICTURES)
    assert set(student.predict(PICTURES)) <= {0, 1}
