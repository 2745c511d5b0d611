"""`reticent train-model`: released values become a model, and rows never do."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

from reticent.systems.loading import load


@pytest.fixture
def released(rows_bundle: Path, tmp_path: Path, command: Any) -> Path:
    """A folder with the bundle, values that it released, and labels."""
    X, y = load_iris(return_X_y=True)
    shutil.copytree(rows_bundle, tmp_path / "bundle")
    np.save(tmp_path / "rows.npy", X)
    np.save(tmp_path / "labels.npy", load_iris().target_names[y])
    answer = command(
        *("release", tmp_path / "bundle", "--input", tmp_path / "rows.npy"),
        *("--output", tmp_path / "values.npz"),
    )
    assert answer.status == 0, answer.err
    return tmp_path


def train(command: Any, folder: Path, *words: Any, values: str = "values.npz") -> Any:
    return command(
        *("train-model", folder / "bundle", "--values", folder / values),
        *("--labels", folder / "labels.npy", "--output", folder / "model", *words),
    )


@pytest.mark.parametrize("kind", ["linear", "channel"])
def test_a_model_is_stored_and_predicts(released: Path, command: Any, kind: str) -> None:
    answer = train(command, released, "--kind", kind)
    assert answer.status == 0, answer.err
    model = load(released / "model")
    assert answer.out.startswith(f"model {model.identity}: ")
    assert model.rows == 150
    with np.load(released / "values.npz") as stored:
        predicted = model.predict(stored["values"])
    labels = np.load(released / "labels.npy")
    assert (predicted == labels).mean() > 0.5
    again = train(command, released, "--kind", kind)
    assert again.status == 2
    assert train(command, released, "--kind", kind, "--overwrite").status == 0
