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


@pytest.fixture(scope="module")
def metric(table) -> PowerEncoder:
    return PowerEncoder(epsilon=3.0, delta=0.0, radius=0.3, mechanism="k-norm-l2", **SMALL).fit(
        *table
    )


@pytest.fixture(scope="module")
def local(table) -> PowerEncoder:
    return PowerEncoder(epsilon=3.0, delta=0.0, radius=None, mechanism="code", **SMALL).fit(*table)


def test_labels_survive_in_both_kinds_of_answer(
    metric: PowerEncoder, local: PowerEncoder, table
) -> None:
    rows, labels = table
    for encoder, least in ((metric, 0.9), (local, 0.9)):
        answer = encoder.release(rows)
        model = LogisticRegression().fit(answer.values[:450], labels[:450])
        assert model.score(answer.values[450:], labels[450:]) > least
        assert not answer.withheld.any()
        assert answer.receipt.bundle == encoder.bundle_identity_
    assert set(np.unique(local.release(rows).values)) == {0.0, 1.0}
