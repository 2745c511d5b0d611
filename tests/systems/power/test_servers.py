"""Servers learn from released values, leave withheld rows out and answer -1 for them."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from reticent.core.errors import InvalidInput, MissingExtra, UnknownName
from reticent.systems.power.servers import train_server


def released() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    labels = np.arange(600) % 2
    return labels[:, None] + 0.2 * random.normal(size=(600, 2)), labels


@pytest.mark.parametrize("name", ["network", "forest", "boosted", "xgboost"])
def test_learns_and_answers(name: str) -> None:
    values, labels = released()
    values[:50] = np.nan
    server = train_server(name, values, labels, seed=0)
    predicted = server.predict(values)
    assert (predicted[:50] == -1).all()
    assert (predicted[50:] == labels[50:]).mean() > 0.95
    assert (server.predict(np.full((2, 2), np.nan)) == -1).all()


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    values, labels = released()
    with pytest.raises(UnknownName, match="server='svm'"):
        train_server("svm", values, labels, seed=0)
    with pytest.raises(InvalidInput, match="at least two released rows"):
        train_server("boosted", np.full_like(values, np.nan), labels, seed=0)
    with pytest.raises(InvalidInput, match=r"expected shape \(3, m\)"):
        train_server("boosted", values, labels[:3], seed=0)
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(MissingExtra, match=r"reticent\[xgboost\]\", or use server='boosted'"):
        train_server("xgboost", values, labels, seed=0)


def test_a_forest_grows_large_leaves_where_values_are_mostly_noise() -> None:
    random = np.random.default_rng(0)
    labels = (random.random(6000) < 0.25).astype(np.int64)
    values = labels[:, None] + 8.0 * random.normal(size=(6000, 1))
    forest = train_server("forest", values, labels, seed=0)
    assert forest.model.model.min_samples_leaf >= 100
    fresh = labels[:, None] + 8.0 * random.normal(size=(6000, 1))
    assert (forest.predict(fresh) == labels).mean() > (
        labels == 0
    ).mean() - 0.005  # small leaves lose a point and more
    clear, few = released()
    assert train_server("forest", clear, few, seed=0).model.model.min_samples_leaf == 10


def test_xgboost_keeps_labels_that_leave_gaps() -> None:
    values, labels = released()
    server = train_server("xgboost", values, 3 * labels + 1, seed=0)
    assert set(server.predict(values).tolist()) == {1, 4}
