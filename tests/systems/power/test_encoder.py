"""PowerEncoder end to end."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from reticent.systems import VectorTraining
from reticent.systems.power.encoder import PowerEncoder
from reticent.tables.attributes import Categorical, Numeric
from reticent.tables.schema import TabularSchema

SCHEMA = TabularSchema(
    (Numeric("a", 0, 10), Numeric("b", -1, 1), Categorical("c", ("x", "y", "z")))
)
SMALL = {
    "schema": SCHEMA,
    "training": VectorTraining(hidden=(8,), epochs=8, head_epochs=2, outputs=1),
    "random_state": 0,
}


@pytest.fixture(scope="module")
def table() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    labels = np.arange(900) % 2
    rows = np.empty((900, 3), dtype=object)
    rows[:, 0] = np.clip(2 + 6 * labels + random.normal(size=900), 0, 10)
    rows[:, 1] = random.uniform(-1, 1, 900)
    rows[:, 2] = np.where(random.random(900) < 0.8, np.array(["x", "y"])[labels], "z")
    return rows, np.array(["no", "yes"])[labels]


def test_labels_survive_noise_within_a_radius(table) -> None:
    rows, labels = table
    encoder = PowerEncoder(epsilon=3.0, delta=0.0, radius=0.3, mechanism="k-norm-l2", **SMALL)
    answer = encoder.fit(rows, labels).release(rows)
    model = LogisticRegression().fit(answer.values[:450], labels[:450])
    assert model.score(answer.values[450:], labels[450:]) > 0.9
    assert not answer.withheld.any()
    assert answer.receipt.bundle == encoder.bundle_identity_
