"""`reticent train-model`: released values become a model, and rows never do."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

from reticent.systems.loading import load
from tests.client.conftest import records_bundle, rows_bundle

__all__ = ["records_bundle", "rows_bundle"]


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


@pytest.mark.parametrize("kind", ["boosted", "linear", "channel"])
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


def test_values_of_another_bundle_and_rows_are_refused(
    released: Path, records_bundle: Path, command: Any
) -> None:
    refused = {}
    refused["rows"] = train(command, released, values="rows.npy")
    refused["nothing"] = train(command, released, values="none.npz")
    with np.load(released / "values.npz") as stored:
        parts = dict(stored)
    receipt = json.loads(parts["receipt"].tobytes())
    text = json.dumps({**receipt, "bundle": "0" * 64}, indent=2, sort_keys=True) + "\n"
    changed = np.frombuffer(text.encode(), dtype=np.uint8)
    np.savez(released / "other.npz", **{**parts, "receipt": changed})
    refused["another bundle"] = train(command, released, values="other.npz")
    np.savez(released / "labels.npz", **{**parts, "values": np.arange(150)})
    refused["released labels"] = train(command, released, values="labels.npz")
    np.save(released / "labels.npy", np.arange(7))
    refused["too few labels"] = train(command, released)
    shutil.rmtree(released / "bundle")
    shutil.copytree(records_bundle, released / "bundle")
    refused["records"] = train(command, released)
    for what, answer in refused.items():
        assert answer.status == 2, what
        assert answer.err.startswith("error: "), what
        assert answer.err.count("\n") == 1, what
    assert "protects records" in refused["records"].err
    assert "expected vectors" in refused["released labels"].err
    assert not (released / "model").exists()
