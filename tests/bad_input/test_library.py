"""What the library cannot use is refused with one clear line, before anything is drawn or spent."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from torch import nn

from reticent.core import Scope
from reticent.core.errors import (
    BudgetExceeded,
    CalibrationFailed,
    CertificationFailed,
    InvalidInput,
    InvalidParameter,
    NotFittedYet,
    ReticentError,
    UnknownName,
    UnsupportedNetwork,
)
from reticent.networks import from_torch
from reticent.published import PublishedObfuscator
from reticent.systems import (
    Calibration,
    CertifiedClassifier,
    ClippedDescent,
    Features,
    Neighbours,
    NoiseAware,
    PosthocClassifier,
    PosthocEncoder,
    PrivateKNNClassifier,
)
from tests.bad_input.conftest import OBFUSCATOR, SETTINGS, Bench, X, Y, spoiled

NAN, INF = float("nan"), float("inf")
KNN: dict[str, Any] = {
    "epsilon": 4.0,
    "delta": 1e-5,
    "queries": 10,
    "neighbours": Neighbours(number=5, sampling_probability=0.5),
    "classes": [0, 1, 2],
    "features": Features(range=(0.0, 8.0)),
}
CERTIFIED: dict[str, Any] = {"epsilon": 1.0, "classes": [0, 1], "k_max": 1}
SOFTMAX = nn.Sequential(nn.Linear(4, 4), nn.Softmax(1))
Case = tuple[dict[str, Any], type[ReticentError], str]

POSTHOC_SETTINGS: list[Case] = [
    ({"epsilon": 0.0}, InvalidParameter, "epsilon="),
    ({"epsilon": INF}, InvalidParameter, "epsilon="),
    ({"epsilon": NAN}, InvalidParameter, "epsilon="),
    ({"epsilon": "much"}, InvalidParameter, "epsilon="),
    ({"epsilon": True}, InvalidParameter, "epsilon="),
    ({"delta": 1.0}, InvalidParameter, "delta="),
    ({"delta": -1e-9}, InvalidParameter, "delta="),
    ({"radius": 0.0}, InvalidParameter, "radius="),
    ({"radius": NAN}, InvalidParameter, "radius="),
    ({"mechanism": "cauchy"}, UnknownName, "mechanism='cauchy'"),
    ({"mechanism": "gaussian"}, CalibrationFailed, "delta"),
    ({"calibration": Calibration(path="local")}, CalibrationFailed, "delta"),
    ({"calibration": Calibration(path="both")}, UnknownName, "path='both'"),
    ({"calibration": Calibration(certificate="crown")}, UnknownName, "certificate='crown'"),
    ({"input_norm": "l3"}, UnknownName, "norm='l3'"),
    ({"embedder": "resnet"}, UnknownName, "embedder='resnet'"),
    ({"embedder": 3}, InvalidParameter, "embedder"),
    ({"obfuscator": PublishedObfuscator("arl", "magic")}, UnknownName, "'magic'"),
    ({"obfuscator": 7}, InvalidParameter, "obfuscator"),
    ({"obfuscator": NoiseAware(outputs=0)}, InvalidParameter, "outputs=0"),
    ({"obfuscator": NoiseAware(epochs=0.5)}, InvalidParameter, r"epochs=0\.5"),
    ({"obfuscator": NoiseAware(hidden=(8, 0))}, InvalidParameter, "hidden=0"),
    ({"calibration": Calibration(share=0.0)}, InvalidParameter, r"share=0\.0"),
    ({"calibration": 0.2}, InvalidParameter, "calibration"),
    ({"calibration": Calibration(head_epochs=0)}, InvalidParameter, "head_epochs=0"),
    ({"obfuscator": SOFTMAX}, UnsupportedNetwork, "Softmax"),
]
POSTHOC_DATA: list[Case] = [
    ({"X": X[:1], "y": Y[:1]}, InvalidInput, "at least|too few"),
    ({"X": X[:0], "y": Y[:0]}, InvalidInput, "0 sample"),
    ({"X": X[:, 0], "y": Y}, InvalidInput, "X: expected shape"),
    ({"X": [["a", "b"], ["c", "d"]], "y": [0, 1]}, InvalidInput, "X: .*real numbers"),
    ({"X": X.astype(complex), "y": Y}, InvalidInput, "X: .*complex"),
    ({"X": [[1.0, 2.0], [3.0]], "y": [0, 1]}, InvalidInput, "X: "),
    ({"X": X, "y": None}, InvalidInput, "requires y"),
    ({"X": X, "y": Y[:-1]}, InvalidInput, "y: "),
    ({"X": X, "y": np.zeros(150, int)}, InvalidInput, "y: .*two classes"),
    ({"X": X, "y": np.linspace(0, 1, 150)}, InvalidInput, "label type"),
]
RELEASED: list[Case] = [
    ({"X": spoiled(NAN)}, InvalidInput, "NaN"),
    ({"X": spoiled(INF)}, InvalidInput, "infinity"),
    ({"X": X[:0]}, InvalidInput, "0 sample"),
    ({"X": X[0]}, InvalidInput, "X: expected shape"),
    ({"X": np.ones((2, 5))}, InvalidInput, "5 features"),
    ({"X": [["a"] * 4]}, InvalidInput, "X: "),
    ({"X": X, "scope": Scope(subject="a")}, InvalidInput, "both or neither"),
]
KNN_FITS: list[Case] = [
    ({"delta": 0.0}, InvalidParameter, "delta="),
    ({"queries": 0}, InvalidParameter, "queries=0"),
    ({"answers": 11}, InvalidParameter, "answers=11"),
    ({"neighbours": Neighbours(number=0)}, InvalidParameter, "neighbours=0"),
    (
        {"neighbours": Neighbours(sampling_probability=0.0)},
        InvalidParameter,
        "sampling_probability=",
    ),
    (
        {"neighbours": Neighbours(sampling_probability=1.5)},
        InvalidParameter,
        "sampling_probability=",
    ),
    ({"neighbours": Neighbours(threshold=NAN)}, InvalidParameter, "threshold="),
    ({"features": Features(map="sift")}, UnknownName, "map='sift'"),
    ({"features": Features(map="hog")}, InvalidParameter, "pictures"),
    ({"features": Features(components=2)}, InvalidParameter, "components"),
    ({"neighbours": Neighbours(engine="annoy")}, UnknownName, "engine='annoy'"),
    ({"classes": [0, 1]}, InvalidInput, "classes.*labels are not shown"),
    ({"classes": [0]}, InvalidInput, "classes: .*two"),
    ({"persons": ["a"]}, InvalidInput, "persons: "),
]
CERTIFIED_FITS: list[Case] = [
    ({"mechanism": "magic"}, UnknownName, "mechanism='magic'"),
    ({"mechanism": "distance"}, InvalidParameter, "delta="),
    ({"k_max": -1}, InvalidParameter, "k_max=-1"),
    ({"counting": "swap"}, UnknownName, "counting='swap'"),
    ({"y": np.zeros(100, int), "classes": "observed"}, InvalidInput, "two"),
    ({"y": np.linspace(0, 1, 100)}, InvalidInput, "label type"),
    ({"identities": ["a"]}, InvalidInput, "identities: "),
    ({"identities": [0.5] * 100}, InvalidInput, "type float"),
    ({"training": ClippedDescent(epochs=2000)}, CertificationFailed, "1024 steps"),
]


def _posthoc(settings: dict[str, Any], data: dict[str, Any]) -> object:
    given = {**SETTINGS, "mechanism": "laplace", "obfuscator": OBFUSCATOR, **settings}
    return PosthocEncoder(**given).fit(**data)


def _knn(changes: dict[str, Any]) -> PrivateKNNClassifier:
    persons = changes.pop("persons", None)
    return PrivateKNNClassifier(**{**KNN, **changes}).fit(X, Y, persons)


def _certified(changes: dict[str, Any]) -> object:
    """A certified classifier on two kinds of iris, with something that has to be refused."""
    data = {"X": X[:100], "y": Y[:100], "identities": None}
    fit = {name: changes.pop(name, value) for name, value in data.items()}
    return CertifiedClassifier(**{**CERTIFIED, **changes}).fit(**fit)


Act = Callable[[Bench], object]
ALONE: list[tuple[Act, type[ReticentError], str]] = [
    (lambda _: PosthocEncoder(**SETTINGS).release(X), NotFittedYet, "not fitted yet"),
    (lambda at: PosthocClassifier.load(at.bundle), InvalidInput, "holds a PosthocEncoder"),
    (lambda at: PosthocEncoder.load(at.folder / "none"), InvalidInput, "bundle folder"),
    (lambda at: at.encoder.save(at.bundle), InvalidInput, "exists already"),
    (lambda _: _knn({}).release(X[:11]), BudgetExceeded, "requested 11, 0 of 10 asked"),
    (
        lambda _: from_torch(nn.Sequential(nn.Linear(2, 2), nn.LSTM(2, 2)), (2,)),
        UnsupportedNetwork,
        "LSTM",
    ),
]


def _cases() -> list[tuple[Act, type[ReticentError], str]]:
    """Everything that has to be refused, as calls."""
    data = {"X": X, "y": Y}
    kinds: list[tuple[list[Case], Callable[[Bench, dict[str, Any]], object]]] = [
        (POSTHOC_SETTINGS, lambda _, given: _posthoc(given, data)),
        (POSTHOC_DATA, lambda _, given: _posthoc({}, given)),
        (RELEASED, lambda bench, given: bench.encoder.release(**given)),
        (KNN_FITS, lambda _, given: _knn(dict(given))),
        (CERTIFIED_FITS, lambda _, given: _certified(dict(given))),
    ]
    return ALONE + [
        (lambda bench, act=act, given=given: act(bench, given), error, word)
        for cases, act in kinds
        for given, error, word in cases
    ]


@pytest.mark.parametrize(("act", "error", "word"), _cases())
def test_the_library_refuses(bench: Bench, act: Act, error: type[ReticentError], word: str) -> None:
    with pytest.raises(error, match=word) as caught:
        act(bench)
    assert "\n" not in str(caught.value)
    assert os.listdir(bench.folder) == []
