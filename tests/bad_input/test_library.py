"""What the library cannot use is refused with one clear line, before anything is drawn or spent."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from torch import nn

from reticent.core import Guarantee, Neighborhood, Norm, Scope
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
    CertifiedEnsemble,
    ClippedDescent,
    NoiseAware,
    PosthocClassifier,
    PosthocEncoder,
    PrivateKNNClassifier,
)
from tests.bad_input.conftest import OBFUSCATOR, SETTINGS, Bench, X, Y, spoiled


def _with(**changes: Any) -> Callable[[Bench], object]:
    return lambda _: PosthocEncoder(
        **{**SETTINGS, "mechanism": "laplace", "obfuscator": OBFUSCATOR, **changes}
    ).fit(X, Y)


def _fit(inputs: Any, labels: Any) -> Callable[[Bench], object]:
    return lambda _: PosthocEncoder(mechanism="laplace", obfuscator=OBFUSCATOR, **SETTINGS).fit(
        inputs, labels
    )


def _certified(**changes: Any) -> Callable[[Bench], object]:
    """A certified classifier on two kinds of iris, with something that has to be refused."""
    arguments = {"X": X[:100], "y": Y[:100], "identities": None}
    fit = {name: changes.pop(name, value) for name, value in arguments.items()}
    return lambda _: CertifiedClassifier(
        **{"epsilon": 1.0, "classes": [0, 1], "k_max": 1, **changes}
    ).fit(**fit)


PUBLIC: dict[str, Any] = {"classes": [0, 1, 2], "feature_range": (0.0, 8.0)}


KNN: dict[str, Any] = {
    "epsilon": 4.0,
    "delta": 1e-5,
    "queries": 10,
    "neighbours": 5,
    "sampling_probability": 0.5,
    **PUBLIC,
}


def _knn(
    inputs: Any = X, labels: Any = Y, persons: Any = None, **changes: Any
) -> Callable[[Bench], object]:
    return lambda _: PrivateKNNClassifier(**{**KNN, **changes}).fit(inputs, labels, persons)


def _knn_release(inputs: Any, **where: Any) -> Callable[[Bench], object]:
    return lambda _: PrivateKNNClassifier(**KNN).fit(X, Y).release(inputs, **where)


def _release(inputs: Any) -> Callable[[Bench], object]:
    return lambda bench: bench.encoder.release(inputs)


API: list[tuple[str, Callable[[Bench], object], type[ReticentError], str]] = [
    (
        "epsilon zero",
        _with(epsilon=0.0),
        InvalidParameter,
        r"epsilon=0\.0: expected a finite number above 0",
    ),
    (
        "epsilon negative",
        _with(epsilon=-1.0),
        InvalidParameter,
        r"epsilon=-1\.0: expected a finite number above 0",
    ),
    ("epsilon infinite", _with(epsilon=float("inf")), InvalidParameter, "epsilon=inf"),
    ("epsilon nan", _with(epsilon=float("nan")), InvalidParameter, "epsilon=nan"),
    ("epsilon text", _with(epsilon="much"), InvalidParameter, "epsilon='much': expected a number"),
    ("epsilon truth", _with(epsilon=True), InvalidParameter, "epsilon=True: expected a number"),
    ("delta one", _with(delta=1.0), InvalidParameter, r"delta=1\.0: expected a number in \[0, 1\)"),
    ("delta negative", _with(delta=-1e-9), InvalidParameter, "delta=-1e-09"),
    ("radius zero", _with(radius=0.0), InvalidParameter, r"radius=0\.0"),
    ("radius nan", _with(radius=float("nan")), InvalidParameter, "radius=nan"),
    (
        "unknown mechanism",
        _with(mechanism="cauchy"),
        UnknownName,
        "mechanism='cauchy': expected one of auto, laplace",
    ),
    (
        "gaussian without delta",
        _with(mechanism="gaussian"),
        CalibrationFailed,
        "Gaussian mechanism need delta above 0",
    ),
    (
        "local without delta",
        _with(path="local"),
        CalibrationFailed,
        "raise delta or allow the global path",
    ),
    (
        "unknown path",
        _with(path="both"),
        UnknownName,
        "path='both': expected one of auto, global, local",
    ),
    (
        "unknown certificate",
        _with(certificate="crown"),
        UnknownName,
        "certificate='crown': expected one of auto",
    ),
    (
        "unknown norm",
        _with(input_norm="l3"),
        UnknownName,
        "norm='l3': expected one of l1, l2, linf",
    ),
    (
        "unknown embedder",
        _with(embedder="resnet"),
        UnknownName,
        "embedder='resnet': expected a torch module, a part, or one of dense",
    ),
    (
        "embedder of another kind",
        _with(embedder=3),
        InvalidParameter,
        "embedder: expected one of dense, convolutional, identity, a torch module, or an est",
    ),
    (
        "unknown regulariser",
        _with(obfuscator=PublishedObfuscator("arl", "magic")),
        UnknownName,
        "'magic'",
    ),
    (
        "obfuscator of another kind",
        _with(obfuscator=7),
        InvalidParameter,
        "obfuscator: expected one of auto, noise-aware",
    ),
    (
        "no outputs",
        _with(obfuscator=NoiseAware(outputs=0)),
        InvalidParameter,
        "outputs=0: expected an integer of at least 1",
    ),
    (
        "half an epoch",
        _with(obfuscator=NoiseAware(epochs=0.5)),
        InvalidParameter,
        r"epochs=0\.5: expected an integer",
    ),
    (
        "empty hidden layer",
        _with(obfuscator=NoiseAware(hidden=(8, 0))),
        InvalidParameter,
        "hidden=0",
    ),
    (
        "no calibration rows",
        _with(calibration=Calibration(share=0.0)),
        InvalidParameter,
        r"share=0\.0",
    ),
    (
        "layer without a certificate",
        _with(obfuscator=nn.Sequential(nn.Linear(4, 4), nn.Softmax(1))),
        UnsupportedNetwork,
        "Softmax",
    ),
    ("one input", _fit(X[:1], Y[:1]), InvalidInput, "at least|too few"),
    (
        "no inputs",
        _fit(X[:0], Y[:0]),
        InvalidInput,
        r"X: 0 sample\(s\) \(shape=\(0, 4\)\) while a minimum of 1 is required",
    ),
    (
        "inputs without a feature axis",
        _fit(X[:, 0], Y),
        InvalidInput,
        r"X: expected shape \(n, features\)",
    ),
    (
        "words for inputs",
        _fit([["a", "b"], ["c", "d"]], [0, 1]),
        InvalidInput,
        "X: expected real numbers, got dtype=<U1",
    ),
    (
        "complex inputs",
        _fit(X.astype(complex), Y),
        InvalidInput,
        "X: Complex data not supported; expected real numbers, got dtype=complex128",
    ),
    (
        "ragged inputs",
        _fit([[1.0, 2.0], [3.0]], [0, 1]),
        InvalidInput,
        "X: expected an array of numbers, got list",
    ),
    ("no labels", _fit(X, None), InvalidInput, "requires y"),
    (
        "too few labels",
        _fit(X, Y[:-1]),
        InvalidInput,
        r"y: expected 150 labels, got shape=\(149,\)",
    ),
    ("one class", _fit(X, np.zeros(150, int)), InvalidInput, "y: expected at least two classes"),
    ("continuous labels", _fit(X, np.linspace(0, 1, 150)), InvalidInput, "Unknown label type"),
    (
        "release before fit",
        lambda _: PosthocEncoder(**SETTINGS).release(X),
        NotFittedYet,
        "not fitted yet; call fit, or",
    ),
    (
        "release of nan",
        _release(spoiled(np.nan)),
        InvalidInput,
        r"X: contains NaN \(1 of 20 values are not finite\)",
    ),
    (
        "release of infinity",
        _release(spoiled(np.inf)),
        InvalidInput,
        r"X: contains infinity \(1 of 20",
    ),
    ("release of nothing", _release(X[:0]), InvalidInput, r"X: 0 sample\(s\)"),
    ("release of one row without its axis", _release(X[0]), InvalidInput, "X: expected shape"),
    (
        "release of too many features",
        _release(np.ones((2, 5))),
        InvalidInput,
        "X has 5 features, but PosthocEncoder is expecting 4",
    ),
    ("release of words", _release([["a"] * 4]), InvalidInput, "X: expected real numbers"),
    (
        "bundle of another system",
        lambda bench: PosthocClassifier.load(bench.bundle),
        InvalidInput,
        "holds a PosthocEncoder",
    ),
    (
        "bundle that is not there",
        lambda bench: PosthocEncoder.load(bench.folder / "none"),
        InvalidInput,
        "expected a bundle folder",
    ),
    (
        "bundle over another",
        lambda bench: bench.encoder.save(bench.bundle),
        InvalidInput,
        "exists already",
    ),
    (
        "ledger without a scope",
        lambda bench: bench.encoder.release(X, scope=Scope(subject="a")),
        InvalidInput,
        "both or neither",
    ),
    (
        "knn: epsilon zero",
        _knn(epsilon=0.0),
        InvalidParameter,
        r"epsilon=0\.0: expected a finite number above 0",
    ),
    (
        "knn: delta zero",
        _knn(delta=0.0),
        InvalidParameter,
        r"delta=0\.0: expected a number in \(0, 1\)",
    ),
    (
        "knn: no queries",
        _knn(queries=0),
        InvalidParameter,
        "queries=0: expected an integer of at least 1",
    ),
    (
        "knn: more labels than queries",
        _knn(answers=11),
        InvalidParameter,
        "answers=11: expected at most queries=10",
    ),
    ("knn: no neighbours", _knn(neighbours=0), InvalidParameter, "neighbours=0"),
    (
        "knn: nobody sampled",
        _knn(sampling_probability=0.0),
        InvalidParameter,
        r"sampling_probability=0\.0",
    ),
    (
        "knn: more than everybody",
        _knn(sampling_probability=1.5),
        InvalidParameter,
        r"sampling_probability=1\.5",
    ),
    ("knn: threshold nan", _knn(threshold=float("nan")), InvalidParameter, "threshold=nan"),
    (
        "knn: unknown features",
        _knn(feature_map="sift"),
        UnknownName,
        "feature_map='sift': expected one of identity, hog",
    ),
    ("knn: gradients of a table", _knn(feature_map="hog"), InvalidParameter, "expected pictures"),
    (
        "knn: unknown engine",
        _knn(engine="annoy"),
        UnknownName,
        "engine='annoy': expected one of numpy, faiss",
    ),
    (
        "knn: a label that is no class",
        _knn(classes=[0, 1]),
        InvalidInput,
        "labels from classes only; labels are not shown",
    ),
    ("knn: one class", _knn(classes=[0]), InvalidInput, "classes: expected at least two"),
    (
        "knn: keys of some",
        _knn(persons=["a"]),
        InvalidInput,
        "persons: expected one per record, got 1 for 150 records",
    ),
    (
        "knn: too few labels",
        _knn(labels=Y[:-1]),
        InvalidInput,
        r"y: expected one label for each of 150 records",
    ),
    (
        "knn: records with nan",
        _knn(inputs=np.where(X > 7, np.nan, X)),
        InvalidInput,
        "X: contains NaN",
    ),
    (
        "knn: release before fit",
        lambda _: PrivateKNNClassifier(**KNN).release(X),
        NotFittedYet,
        "not fitted yet",
    ),
    (
        "knn: more queries than planned",
        _knn_release(X[:11]),
        BudgetExceeded,
        "requested 11, 0 of 10 asked",
    ),
    (
        "knn: too many features",
        _knn_release(np.ones((2, 5))),
        InvalidInput,
        "X has 5 features, but PrivateKNNClassifier",
    ),
    (
        "knn: queries with infinity",
        _knn_release(spoiled(np.inf)),
        InvalidInput,
        "X: contains infinity",
    ),
    (
        "knn: ledger without a scope",
        _knn_release(X[:1], scope=Scope(subject="a")),
        InvalidInput,
        "both or neither",
    ),
    (
        "certified: epsilon zero",
        _certified(epsilon=0.0),
        InvalidParameter,
        r"epsilon=0\.0: expected a finite number above 0",
    ),
    (
        "certified: unknown mechanism",
        _certified(mechanism="magic"),
        UnknownName,
        "mechanism='magic': expected one of auto, stability",
    ),
    (
        "certified: exact answers without delta",
        _certified(mechanism="distance"),
        InvalidParameter,
        r"delta=0\.0: expected a number in",
    ),
    (
        "certified: fewer than no changes",
        _certified(k_max=-1),
        InvalidParameter,
        "k_max=-1: expected an integer of at least 0",
    ),
    (
        "certified: unknown counting",
        _certified(counting="swap"),
        UnknownName,
        "counting='swap': expected one of add-remove",
    ),
    ("certified: nan", _certified(X=np.full((100, 4), np.nan)), InvalidInput, "X: contains NaN"),
    (
        "certified: one class",
        _certified(y=np.zeros(100, int), classes="observed"),
        InvalidInput,
        "expected at least two, got 1",
    ),
    (
        "certified: continuous labels",
        _certified(y=np.linspace(0, 1, 100)),
        InvalidInput,
        "Unknown label type",
    ),
    (
        "certified: too few keys",
        _certified(identities=["a"]),
        InvalidInput,
        "identities: expected one per record, got 1 for 100 records",
    ),
    (
        "certified: keys of no kind",
        _certified(identities=[0.5] * 100),
        InvalidInput,
        "got an entry of type float",
    ),
    (
        "certified: too many steps",
        _certified(training=ClippedDescent(epochs=2000)),
        CertificationFailed,
        "epochs . batches = 2000: expected fewer than 1024 steps",
    ),
    (
        "certified: a vote over replaced records",
        lambda _: CertifiedEnsemble(epsilon=1.0, classes=[0, 1, 2], counting="replace").fit(X, Y),
        InvalidParameter,
        "a replaced record can change two members",
    ),
    (
        "certified: release before fit",
        lambda _: CertifiedClassifier(epsilon=1.0, classes=[0, 1]).release(X),
        NotFittedYet,
        "not fitted yet",
    ),
    (
        "a network that ends in two",
        lambda _: from_torch(nn.Sequential(nn.Linear(2, 2), nn.LSTM(2, 2)), (2,)),
        UnsupportedNetwork,
        "LSTM",
    ),
]


@pytest.mark.parametrize(
    ("act", "error", "message"), [case[1:] for case in API], ids=[case[0] for case in API]
)
def test_the_library_refuses(
    bench: Bench, act: Callable[[Bench], object], error: type[ReticentError], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        act(bench)
    assert "\n" not in str(caught.value)
    assert os.listdir(bench.folder) == []


def test_guarantees_of_different_neighbourhoods_do_not_add() -> None:
    near, far = (
        Guarantee(1.0, 0.0, Neighborhood(Norm.LINF, radius, "plane")) for radius in (0.1, 0.2)
    )
    with pytest.raises(ReticentError, match="only within one adjacency"):
        near.compose(far)
