"""PowerEncoder end to end: what it costs, keeps, refuses and stores; the whole release under
audit.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from reticent.audit import refute_recorded
from reticent.noise import AuditSampler, Sampler, SecureSampler
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
RUNS = 100_000


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


def worst_pair(encoder: PowerEncoder) -> tuple[np.ndarray, np.ndarray]:
    """Two encoded rows at the radius, along the encoder's own gradient."""
    random = np.random.default_rng(1)
    query, radius = encoder.query_, encoder.radius
    here = random.uniform(0.35, 0.65, (4000, query.schema.dimension))
    step = 1e-4 * np.eye(query.schema.dimension)
    gradient = np.stack(
        [(query.exact(here + move) - query.exact(here - move))[:, 0] / 2e-4 for move in step],
        axis=1,
    )
    there = here + radius * gradient / np.maximum(
        np.linalg.norm(gradient, axis=1, keepdims=True), 1e-12
    )
    apart = np.abs(query.exact(there) - query.exact(here))[:, 0]
    best = int(apart.argmax())
    assert apart[best] > 0.9 * radius  # the encoder is as steep as its certificate allows
    return here[best], there[best]


def audited(
    encoder: PowerEncoder, here: np.ndarray, there: np.ndarray, *, million: bool = False
) -> float:
    query = encoder.query_
    values = query.exact(np.stack([here, there]))

    def scores(row: np.ndarray, seed: int) -> np.ndarray:
        sampler: Sampler = SecureSampler() if million else AuditSampler(seed)
        runs, part = 1_000_000 if million else RUNS, 2**16
        released = np.concatenate(
            [
                query.answer(np.tile(row, (min(part, runs - start), 1)), sampler=sampler)[0]
                for start in range(0, runs, part)
            ]
        )
        return np.linalg.norm(released - values[1], axis=1) - np.linalg.norm(
            released - values[0], axis=1
        )

    alpha = 1e-9 if million else 1e-3
    found = refute_recorded(
        scores(here, 2), scores(there, 3), epsilon=3.0, delta=0.0, alpha=alpha, seed=0
    )
    return found.excluded(delta=0.0)


@pytest.mark.parametrize("million", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_audit_of_vectors_on_the_worst_pair_and_on_one_too_far_apart(
    metric: PowerEncoder, million: bool
) -> None:
    here, there = worst_pair(metric)
    assert 0.7 * 3.0 < audited(metric, here, there, million=million) <= 3.0
    # Planted fault: neighbours twice as far apart as the noise covers.
    assert audited(metric, here, here + 2.0 * (there - here), million=million) > 3.0
