"""Servers learn from released values, leave withheld rows out and answer -1 for them."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.systems.power.servers import train_server


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
