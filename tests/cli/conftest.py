"""Small fitted bundles, and a way to run command lines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.datasets import load_iris

from reticent.cli.main import run
from reticent.systems import (
    PowerEncoder,
    VectorTraining,
)
from reticent.tables import Categorical, Numeric, TabularSchema
from tests.client.conftest import labels_bundle, records_bundle, rows_bundle, vectors_bundle

__all__ = ["labels_bundle", "records_bundle", "rows_bundle", "vectors_bundle"]

FLOWERS = ("sepal length", "sepal width", "petal length", "petal width")
FLOWER_SCHEMA = TabularSchema(
    (
        *(Numeric(name, 0, 8) for name in FLOWERS[:3]),
        Numeric(FLOWERS[3], 0, 8, missing=-1),
        Categorical("garden", ("north", "south")),
    )
)


@pytest.fixture(scope="session")
def flowers() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Iris with a category that tells a little about the kind, and the kinds."""
    numbers, kinds = load_iris(return_X_y=True)
    rows = np.empty((len(numbers), 5), dtype=object)
    rows[:, :4] = numbers
    rows[:, 4] = np.where((np.arange(len(numbers)) % 5 == 0) ^ (kinds == 2), "south", "north")
    return rows, kinds


@pytest.fixture(scope="session")
def power_bundle(
    flowers: tuple[np.ndarray[Any, Any], ...], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Near records are neighbours, and epsilon is so large that what is released is the exact
    value to four digits.
    """
    settings = {
        "mechanism": "k-norm-l2",
        "training": VectorTraining(outputs=2, hidden=(8,), epochs=2, head_epochs=1),
        "random_state": 0,
    }
    encoder = PowerEncoder(epsilon=1e5, delta=0.0, radius=0.2, schema=FLOWER_SCHEMA, **settings)
    return encoder.fit(*flowers).save(tmp_path_factory.mktemp("bundles") / "power")


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """Twenty flowers."""
    path = tmp_path / "inputs.npy"
    np.save(path, load_iris().data[::7][:20])
    return path


class Answer(NamedTuple):
    """What a command line did."""

    status: int
    out: str
    err: str


@pytest.fixture
def command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Answer]:
    """Runs one command line."""
    monkeypatch.setenv("COLUMNS", "200")

    def command(*words: object) -> Answer:
        capsys.readouterr()
        status = run([str(word) for word in words])
        return Answer(status, *capsys.readouterr())

    return command
