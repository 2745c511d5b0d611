"""What cannot be used is refused with one clear line, before anything is drawn, spent or
written.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris
from torch import nn

from reticent.bundles.bundle import Bundle
from reticent.cli.main import run
from reticent.core import Guarantee, Neighborhood, Norm, Scope
from reticent.core.errors import (
    BudgetExceeded,
    CalibrationFailed,
    CertificationFailed,
    CorruptBundle,
    DataUnavailable,
    InvalidInput,
    InvalidParameter,
    LedgerUnavailable,
    NotFittedYet,
    ReticentError,
    UnknownName,
    UnsupportedNetwork,
    WriteFailed,
)
from reticent.ledger import Ledger
from reticent.neighbours import SampledNeighbours
from reticent.networks import from_torch
from reticent.systems import (
    Calibration,
    CertifiedClassifier,
    CertifiedEnsemble,
    NoiseAware,
    PosthocClassifier,
    PosthocEncoder,
    PrivateKNNClassifier,
    Published,
)
from reticent.systems.posthoc.query import PrivateQuery

X, Y = load_iris(return_X_y=True)
SETTINGS: dict[str, Any] = {
    "epsilon": 4.0,
    "delta": 0.0,
    "radius": 0.2,
    "embedder": "identity",
    "random_state": 0,
}
OBFUSCATOR = NoiseAware(outputs=2, hidden=(8,), epochs=1)


@dataclass(frozen=True)
class Bench:
    """A fitted encoder, its bundle, and an empty folder."""

    encoder: PosthocEncoder
    bundle: Path
    folder: Path


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> tuple[PosthocEncoder, Path]:
    encoder = PosthocEncoder(mechanism="laplace", obfuscator=OBFUSCATOR, **SETTINGS).fit(X, Y)
    return encoder, encoder.save(tmp_path_factory.mktemp("bundles") / "encoder")


@pytest.fixture
def bench(
    fitted: tuple[PosthocEncoder, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Bench:
    """The bench; answering is a failure, since every case here must stop before it."""

    def answer(*_: object, **__: object) -> None:
        pytest.fail("computed an answer for input that has to be refused")

    monkeypatch.setattr(PrivateQuery, "answer", answer)
    monkeypatch.setattr(SampledNeighbours, "draw", answer)
    monkeypatch.delenv("RETICENT_DATA", raising=False)
    return Bench(*fitted, tmp_path)


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
    arguments = {"X": X[:100], "y": Y[:100], "keys": None}
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
    inputs: Any = X, labels: Any = Y, keys: Any = None, **changes: Any
) -> Callable[[Bench], object]:
    return lambda _: PrivateKNNClassifier(**{**KNN, **changes}).fit(inputs, labels, keys)


def _knn_release(inputs: Any, **where: Any) -> Callable[[Bench], object]:
    return lambda _: PrivateKNNClassifier(**KNN).fit(X, Y).release(inputs, **where)


def _release(inputs: Any) -> Callable[[Bench], object]:
    return lambda bench: bench.encoder.release(inputs)


def _spoiled(value: float) -> np.ndarray:
    spoiled = X[:5].copy()
    spoiled[2, 1] = value
    return spoiled


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
    ("unknown regulariser", _with(obfuscator=Published("arl", "magic")), UnknownName, "'magic'"),
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
        _release(_spoiled(np.nan)),
        InvalidInput,
        r"X: contains NaN \(1 of 20 values are not finite\)",
    ),
    (
        "release of infinity",
        _release(_spoiled(np.inf)),
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
    ("knn: too little noise", _knn(sigma_votes=0.01), CalibrationFailed, "the total is epsilon="),
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
        _knn(keys=["a"]),
        InvalidInput,
        "keys: expected one per record, got 1 for 150 records",
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
        _knn_release(_spoiled(np.inf)),
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
    ("certified: no clip", _certified(clip=0.0), InvalidParameter, r"clip=0\.0"),
    ("certified: momentum one", _certified(momentum=1.0), InvalidParameter, r"momentum=1\.0"),
    (
        "certified: unknown counting",
        _certified(counting="swap"),
        UnknownName,
        "counting='swap': expected one of add-remove",
    ),
    ("certified: no inputs", _certified(X=X[:0], y=Y[:0]), InvalidInput, r"X: 0 sample\(s\)"),
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
        _certified(keys=["a"]),
        InvalidInput,
        "keys: expected one per record, got 1 for 100 records",
    ),
    (
        "certified: keys of no kind",
        _certified(keys=[0.5] * 100),
        InvalidInput,
        "got an entry of type float",
    ),
    (
        "certified: too many steps",
        _certified(epochs=2000),
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


def _saved(bench: Bench, name: str, array: Any) -> Path:
    np.save(bench.folder / name, array)
    return bench.folder / name


def _good(bench: Bench) -> Path:
    return _saved(bench, "x.npy", X[:5])


def _text(bench: Bench, name: str, content: bytes) -> Path:
    (bench.folder / name).write_bytes(content)
    return bench.folder / name


def _damaged(bench: Bench, name: str, change: Callable[[bytes], bytes]) -> Path:
    copy = bench.folder / "bundle"
    shutil.copytree(bench.bundle, copy)
    (copy / name).write_bytes(change((copy / name).read_bytes()))
    return copy


def _incomplete(bench: Bench) -> Path:
    copy = _damaged(bench, "card.md", lambda content: content)
    (copy / "weights.safetensors").unlink()
    return copy


def _resettled(
    bench: Bench, change: Callable[[dict[str, Any]], object], *, system: str = ""
) -> Path:
    """A copy with other settings, or of another system, and a manifest that covers them:
    somebody took care.
    """
    stored = Bundle.read(bench.bundle)
    settings = json.loads(json.dumps(stored.settings))
    change(settings)
    made = Bundle(system or stored.system, settings, stored.arrays, stored.card, stored.serial)
    return made.write(bench.folder / "bundle")


def _flip(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def _out(bench: Bench) -> Path:
    return bench.folder / "out.npz"


def _releasing(
    bundle: Callable[[Bench], Path], inputs: Callable[[Bench], Path]
) -> Callable[[Bench], list[object]]:
    return lambda bench: [
        "release",
        bundle(bench),
        "--input",
        inputs(bench),
        "--output",
        _out(bench),
    ]


def _taken(bench: Bench) -> list[object]:
    (bench.folder / "file").write_text("")
    return [
        "release",
        bench.bundle,
        "--input",
        _good(bench),
        "--output",
        bench.folder / "file" / "out.npz",
    ]


def _ledger(bench: Bench, *words: object) -> list[object]:
    return ["release", bench.bundle, "--input", _good(bench), "--output", _out(bench), *words]


def _poor(bench: Bench) -> list[object]:
    book = Ledger.create(bench.folder / "book.sqlite")
    book.grant(Scope(subject="anna"), Guarantee(1.0, 0.0, bench.encoder.guarantee.adjacency))
    book.close()
    return _ledger(bench, "--ledger", bench.folder / "book.sqlite", "--subject", "anna")


def _mine(bench: Bench) -> Path:
    return bench.bundle


def _certifying(*words: object) -> Callable[[Bench], list[object]]:
    return lambda bench: ["certify", bench.bundle, "--input", _good(bench), *words]


USAGE = 2
CLI: list[tuple[str, Callable[[Bench], list[object]], type[ReticentError] | int, str]] = [
    ("no such command", lambda _: ["publish"], USAGE, "No such command 'publish'"),
    ("no such option", lambda bench: ["card", bench.bundle, "--yaml"], USAGE, "No such option"),
    (
        "release without input",
        lambda bench: ["release", bench.bundle],
        USAGE,
        "Missing option '--input'",
    ),
    ("release with a seed", lambda bench: _ledger(bench, "--seed", 1), USAGE, "No such option"),
    ("certify without a radius", _certifying(), USAGE, "Missing option '--radius'"),
    (
        "certify with a word",
        _certifying("--radius", "wide"),
        USAGE,
        "'--radius': Input should be a valid number",
    ),
    (
        "certify at radius zero",
        _certifying("--radius", 0),
        InvalidParameter,
        r"radius=0\.0: expected a finite number above 0",
    ),
    ("certify at radius nan", _certifying("--radius", "nan"), InvalidParameter, "radius=nan"),
    (
        "demo of an unknown data set",
        lambda _: ["demo", "posthoc", "--data", "cats"],
        USAGE,
        "'cats' is not one of",
    ),
    (
        "demo with a negative seed",
        lambda _: ["demo", "posthoc", "--seed", -1],
        USAGE,
        "'--seed': Input should be greater than or equal to 0",
    ),
    (
        "demo without its data",
        lambda _: ["demo", "posthoc", "--data", "utkface"],
        DataUnavailable,
        "RETICENT_DATA",
    ),
    (
        "demo over a folder of yours",
        lambda bench: ["demo", "posthoc", "--out", _text(bench, "thesis.txt", b"").parent],
        InvalidInput,
        r"holds no results\.json, so it will not be replaced",
    ),
    (
        "no bundle",
        _releasing(lambda bench: bench.folder / "none", _good),
        InvalidInput,
        "expected a bundle folder, found none",
    ),
    (
        "no input",
        _releasing(_mine, lambda bench: bench.folder / "none.npy"),
        InvalidInput,
        "cannot be read .No such file",
    ),
    (
        "input that is a folder",
        _releasing(_mine, lambda bench: bench.folder),
        InvalidInput,
        "cannot be read .Is a directory",
    ),
    (
        "input of another format",
        _releasing(_mine, lambda bench: _text(bench, "x.npy", b"1,2")),
        InvalidInput,
        "not an .npy file",
    ),
    (
        "input cut short",
        _releasing(_mine, lambda bench: _text(bench, "x.npy", _good(bench).read_bytes()[:-9])),
        InvalidInput,
        "damaged, cut short",
    ),
    (
        "input with objects",
        _releasing(_mine, lambda bench: _saved(bench, "x.npy", np.array([{}, []], dtype=object))),
        InvalidInput,
        "holding Python objects",
    ),
    (
        "input with nan",
        _releasing(_mine, lambda bench: _saved(bench, "x.npy", _spoiled(np.nan))),
        InvalidInput,
        "contains NaN",
    ),
    (
        "input of another shape",
        _releasing(_mine, lambda bench: _saved(bench, "x.npy", np.ones((2, 9)))),
        InvalidInput,
        "9 features",
    ),
    (
        "input of no shape",
        _releasing(_mine, lambda bench: _saved(bench, "x.npy", np.float64(1))),
        InvalidInput,
        "X: expected shape",
    ),
    (
        "input without rows",
        _releasing(_mine, lambda bench: _saved(bench, "x.npy", X[:0])),
        InvalidInput,
        "a minimum of 1",
    ),
    (
        "weights cut short",
        _releasing(lambda b: _damaged(b, "weights.safetensors", lambda c: c[:-8]), _good),
        CorruptBundle,
        "checksum",
    ),
    (
        "one bit of the weights",
        _releasing(lambda b: _damaged(b, "weights.safetensors", _flip), _good),
        CorruptBundle,
        "checksum",
    ),
    (
        "card changed",
        _releasing(lambda b: _damaged(b, "card.md", lambda c: c + b"!"), _good),
        CorruptBundle,
        "card.md does not match",
    ),
    (
        "settings cut short",
        _releasing(lambda b: _damaged(b, "bundle.json", lambda c: c[:90]), _good),
        CorruptBundle,
        "bundle.json does not match",
    ),
    ("weights missing", _releasing(_incomplete, _good), CorruptBundle, "cannot be read"),
    (
        "another version",
        _releasing(
            lambda b: _damaged(
                b, "manifest.json", lambda c: c.replace(b'"version": 2', b'"version": 99')
            ),
            _good,
        ),
        CorruptBundle,
        "version 2",
    ),
    (
        "another system",
        _releasing(lambda b: _resettled(b, lambda _: None, system="Oracle"), _good),
        InvalidInput,
        "holds a Oracle",
    ),
    (
        "settings without a plan",
        _releasing(lambda b: _resettled(b, lambda h: h.pop("plan")), _good),
        CorruptBundle,
        "fit",
    ),
    (
        "a cheaper claim than the plan",
        _releasing(lambda b: _resettled(b, lambda h: h["requirement"].update(epsilon=0.1)), _good),
        CorruptBundle,
        "do not fit together",
    ),
    (
        "a smaller constant than the network has",
        _releasing(lambda b: _resettled(b, lambda h: h["plan"].update(proposal=1e-6)), _good),
        CorruptBundle,
        "do not fit together",
    ),
    ("output in the place of a file", _taken, WriteFailed, "could not be written"),
    (
        "output that is a folder",
        lambda b: ["release", b.bundle, "--input", _good(b), "--output", b.folder],
        InvalidInput,
        "is a folder",
    ),
    (
        "client without a ledger",
        lambda b: _ledger(b, "--client", "acme"),
        InvalidInput,
        "together with --ledger",
    ),
    (
        "ledger that is not there",
        lambda b: _ledger(b, "--ledger", b.folder / "no.sqlite", "--subject", "anna"),
        LedgerUnavailable,
        "no.sqlite",
    ),
    ("budget too small", _poor, BudgetExceeded, "anna"),
]


@pytest.mark.parametrize(
    ("words", "error", "message"), [case[1:] for case in CLI], ids=[case[0] for case in CLI]
)
def test_the_command_line_refuses(
    bench: Bench,
    words: Callable[[Bench], list[object]],
    error: type[ReticentError] | int,
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = [str(word) for word in words(bench)]
    monkeypatch.chdir(bench.folder)
    before = sorted(os.listdir(bench.folder))
    status = run(line)
    shown = capsys.readouterr()
    assert status == (error if isinstance(error, int) else error.code)
    assert shown.out == ""
    assert shown.err.startswith("error: ")
    assert shown.err.count("\n") == 1
    assert re.search(message, shown.err), shown.err
    assert [
        name for name in sorted(os.listdir(bench.folder)) if not name.startswith("book.sqlite")
    ] == [name for name in before if not name.startswith("book.sqlite")]


def test_a_refused_budget_spends_nothing(bench: Bench) -> None:
    words = [str(word) for word in _poor(bench)]
    assert run(words) == BudgetExceeded.code
    book = Ledger.open(bench.folder / "book.sqlite")
    assert [budget.spent_epsilon for budget in book.report().budgets] == [0]
    book.close()


@pytest.fixture
def full_disk() -> Any:
    """No file may grow beyond 8 KiB, which is how a full disk looks to a writer."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_is_found_out_before_anything_is_answered(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = _good(bench)
    status = run(
        ["release", str(bench.bundle), "--input", str(inputs), "--output", str(_out(bench))]
    )
    assert status == WriteFailed.code
    assert "nothing was left behind" in capsys.readouterr().err
    assert os.listdir(bench.folder) == ["x.npy"]


@pytest.mark.usefixtures("full_disk")
def test_a_bundle_on_a_full_disk_leaves_nothing(
    fitted: tuple[PosthocEncoder, Path], tmp_path: Path
) -> None:
    wide = PosthocEncoder(
        obfuscator=nn.Sequential(nn.Linear(4, 600), nn.ReLU(), nn.Linear(600, 2)),
        mechanism="laplace",
        **SETTINGS,
    )
    torch.manual_seed(0)
    with pytest.raises(WriteFailed, match="nothing was left"):
        wide.fit(X, Y).save(tmp_path / "wide")
    assert os.listdir(tmp_path) == []


def test_guarantees_of_different_neighbourhoods_do_not_add() -> None:
    near, far = (
        Guarantee(1.0, 0.0, Neighborhood(Norm.LINF, radius, "plane")) for radius in (0.1, 0.2)
    )
    with pytest.raises(ReticentError, match="only within one adjacency"):
        near.compose(far)
