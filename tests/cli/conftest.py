"""Small fitted bundles, and a way to run command lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris

from reticent.cli.main import run
from reticent.systems import PosthocClassifier, PosthocEncoder

SETTINGS = {"delta": 0.0, "radius": 0.2, "embedder": "identity", "hidden": (8,), "epochs": 2, "random_state": 0}


@pytest.fixture(scope="session")
def encoder_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    inputs, labels = load_iris(return_X_y=True)
    encoder = PosthocEncoder(epsilon=4.0, law="laplace", outputs=2, **SETTINGS).fit(inputs, labels)
    return encoder.save(tmp_path_factory.mktemp("bundles") / "encoder")


@pytest.fixture(scope="session")
def classifier_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    iris = load_iris()
    names = iris.target_names[iris.target]
    classifier = PosthocClassifier(epsilon=8.0, law="softmax", **SETTINGS).fit(iris.data, names)
    return classifier.save(tmp_path_factory.mktemp("bundles") / "classifier")


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """Twenty flowers."""
    path = tmp_path / "inputs.npy"
    np.save(path, load_iris().data[::7][:20])
    return path


@dataclass(frozen=True)
class Answer:
    """What a command line did."""

    status: int
    out: str
    err: str


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Answer]:
    """Runs one command line."""
    monkeypatch.setenv("COLUMNS", "160")

    def command(*words: object) -> Answer:
        capsys.readouterr()
        status = run([str(word) for word in words])
        return Answer(status, *capsys.readouterr())

    return command
