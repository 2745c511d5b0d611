"""Models of released values: stored as arrays they say what they said when they were trained."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reticent.core import Guarantee, Replace
from reticent.core.errors import CorruptBundle, InvalidInput
from reticent.systems import train_server
from reticent.systems.value_models import KINDS, ValueModel, train_value_model
from tests.test_without_torch import run_without_torch

ONE = Guarantee(1.0, 0.0, Replace(1))
BUNDLE = "ab" * 32
CHANNEL = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])


def rows(kind: str, classes: int = 3) -> tuple[Any, Any]:
    """Values that tell something about their labels, as a release gives them."""
    random = np.random.default_rng(7)
    labels = random.integers(0, classes, 400)
    if kind == "channel":
        chances = CHANNEL[labels].cumsum(axis=1)
        values = np.eye(3)[(random.random(400)[:, None] < chances).argmax(axis=1)]
    else:
        values = np.eye(classes, 3)[labels] * 3 + random.laplace(size=(400, 3))
        values[5] = np.nan
    return values, np.array(["no", "perhaps", "yes"])[labels]


def trained(kind: str, classes: int = 3) -> tuple[ValueModel, Any, Any]:
    values, labels = rows(kind, classes)
    channel = CHANNEL if kind == "channel" else None
    model = train_value_model(
        kind, values, labels, seed=0, bundle=BUNDLE, guarantee=ONE, channel=channel
    )
    return model, values, labels


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_a_stored_model_predicts_as_the_one_that_was_trained(
    kind: str, classes: int, tmp_path: Path
) -> None:
    model, values, labels = trained(kind, classes)
    loaded = ValueModel.load(model.save(tmp_path / "model"))
    assert loaded.identity == model.identity
    assert loaded.predict(values).tolist() == model.predict(values).tolist()
    known = np.isfinite(values).all(axis=1)
    right = model.predict(values)[known] == labels[known]
    assert right.mean() > 0.75
    if kind == "linear":
        return
    channel = CHANNEL if kind == "channel" else None
    server = train_server(kind, values, labels, seed=0, channel=channel)
    assert np.allclose(
        server.predict_proba(values[known]), model.predict_proba(values)[known], atol=1e-5
    )


def test_a_channel_takes_its_own_outputs_only() -> None:
    model, _, _ = trained("channel")
    for row in ([0.5, 0.5, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]):
        with pytest.raises(InvalidInput, match="one 1 a row"):
            model.predict([row])


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_model_is_refused(kind: str, tmp_path: Path) -> None:
    model, _, _ = trained(kind)
    stored = model.stored()
    changes: dict[str, dict[str, Any]] = {
        "labels": {"labels": ["no", "yes"]},
        "width": {"width": 1},
        "kind": {"kind": "boosted" if kind != "boosted" else "linear"},
        "more": {"more": 1},
        "bundle": {"bundle": "xyz"},
    }
    for name, change in changes.items():
        settings = {**stored.settings, **change}
        replace(stored, settings=settings).write(tmp_path / name)
        with pytest.raises(CorruptBundle):
            ValueModel.load(tmp_path / name)
    arrays = {
        name: array * np.nan if array.dtype.kind == "f" else array - 99
        for name, array in stored.arrays.items()
    }
    replace(stored, arrays=arrays).write(tmp_path / "weights")
    with pytest.raises(CorruptBundle):
        ValueModel.load(tmp_path / "weights")


def test_a_stored_network_needs_no_torch(tmp_path: Path) -> None:
    model, _, _ = trained("network")
    model.save(tmp_path / "model")
    code = """
from reticent.systems.loading import load
from reticent.systems.value_models import ValueModel
print(ValueModel.load("model").predict([[9.0, 0.0, 0.0], [0.0, 0.0, 9.0]]).tolist())
"""
    assert run_without_torch(code, tmp_path) == ["['no', 'yes']"]
