"""Models of released values: stored as arrays they say what they said when they were trained;
servers leave withheld rows out and answer -1 for them.
"""

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


def released() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    labels = np.arange(600) % 2
    return labels[:, None] + 0.2 * random.normal(size=(600, 2)), labels


def test_a_forest_grows_large_leaves_where_values_are_mostly_noise() -> None:
    random = np.random.default_rng(0)
    labels = (random.random(6000) < 0.25).astype(np.int64)
    values = labels[:, None] + 8.0 * random.normal(size=(6000, 1))
    forest = train_server("forest", values, labels, seed=0)
    assert forest.model.min_samples_leaf >= 100
    fresh = labels[:, None] + 8.0 * random.normal(size=(6000, 1))
    assert (forest.predict(fresh) == labels).mean() > (
        labels == 0
    ).mean() - 0.005  # small leaves lose a point and more
    clear, few = released()
    assert train_server("forest", clear, few, seed=0).model.min_samples_leaf == 10


@pytest.mark.parametrize("name", ["network", "forest", "boosted", "xgboost"])
@pytest.mark.parametrize(
    ("names", "withheld"), [(np.array(["no", "yes"]), ""), (np.array([False, True]), None)]
)
def test_labels_may_be_words_or_truth_values(
    name: str, names: np.ndarray, withheld: object
) -> None:
    values, labels = released()
    server = train_server(name, values, names[labels], seed=0)
    assert (server.predict(values) == names[labels]).mean() > 0.95
    p = server.predict_proba(np.vstack([values, [[np.nan, np.nan]]]))
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(p[-1], 0.5)  # nothing is known: the shares of labels
    assert (p[:-1].argmax(axis=1) == labels).mean() > 0.95
    assert server.predict([[np.nan, np.nan]]).tolist() == [withheld]


def test_the_channel_is_inverted_before_labels_are_counted() -> None:
    random = np.random.default_rng(0)
    channel = np.array([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]])
    shares = np.array([[0.8, 0.15, 0.05], [0.1, 0.2, 0.7]])  # of bins, for each label
    labels = (random.random(40_000) < 0.3).astype(int)
    bins = (random.random(40_000)[:, None] > shares.cumsum(axis=1)[labels]).sum(axis=1)
    outputs = (random.random(40_000)[:, None] > channel.cumsum(axis=1)[bins]).sum(axis=1)
    server = train_server("channel", np.eye(3)[outputs], labels, seed=0, channel=channel)
    together = (np.array([[0.7], [0.3]]) * (shares @ channel)).T
    np.testing.assert_allclose(
        server.predict_proba(np.eye(3)), together / together.sum(axis=1, keepdims=True), atol=0.01
    )
    assert server.predict(np.eye(3)).tolist() == together.argmax(axis=1).tolist()
    wanted = (together / together.sum(axis=0)).argmax(axis=1).tolist()
    assert server.predict(np.eye(3), balanced=True).tolist() == wanted
