"""What is known of candidates: laws of their answers, and steps as the guarantee counts them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

from reticent.attacks.candidates import attackable_query, candidates_of, points_of
from reticent.noise import AuditSampler
from reticent.systems import (
    Calibration,
    PosthocClassifier,
    PosthocEncoder,
    PowerEncoder,
    VectorTraining,
)
from reticent.tables import Numeric, TabularSchema

X, Y = load_iris(return_X_y=True)
X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
SCHEMA = TabularSchema(tuple(Numeric(f"x{place}", 0, 1) for place in range(4)))


def encoder(**changes) -> PosthocEncoder:
    settings = {"epsilon": 2.0, "delta": 0.0, "radius": 0.2, "mechanism": "laplace", **changes}
    return PosthocEncoder(
        embedder="identity", obfuscator="identity", random_state=0, **settings
    ).fit(X, Y)


def classifier(mechanism: str) -> PosthocClassifier:
    return PosthocClassifier(
        epsilon=2.0, delta=0.0, radius=0.2, embedder="identity", mechanism=mechanism,
        random_state=0,
    ).fit(X, Y)  # fmt: skip


def table(**changes) -> PowerEncoder:
    settings = {
        "epsilon": 2.0,
        "delta": 0.0,
        "radius": None,
        "schema": SCHEMA,
        "training": VectorTraining(epochs=1),
    }
    return PowerEncoder(**{**settings, **changes}, random_state=0).fit(X, Y)


SYSTEMS = {
    "laplace": lambda: encoder(mechanism="laplace"),
    "k-norm-l2": lambda: encoder(mechanism="k-norm-l2", input_norm="l2"),
    "gaussian": lambda: encoder(mechanism="gaussian", delta=1e-3),
    "local": lambda: encoder(
        mechanism="laplace", delta=1e-3, calibration=Calibration(path="local")
    ),
    "table": lambda: classifier("table"),
    "hop": lambda: classifier("hop"),
    "response": lambda: classifier("response"),
    "noisy max": lambda: classifier("noisy-max"),
    "power vectors": lambda: table(
        mechanism="k-norm-l2",
        training=VectorTraining(outputs=2, hidden=(8,), epochs=1),
        radius=0.3,
    ),
    "power code": lambda: table(mechanism="code"),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_weights_are_the_laws_of_the_answers(name: str) -> None:
    """The mean of P(z | b)/P(z | a) over answers z about a is 1: the weights belong to what is
    drawn, and differences of two are log-likelihood ratios.
    """
    system = SYSTEMS[name]()
    query = attackable_query(system)
    points = points_of(query, system.checked(X[[0, 60, 140, 61]]))
    found = candidates_of(query, points)
    runs = 20_000
    answers = found.answer(np.ones(runs, dtype=np.int64), AuditSampler(3))
    weights = found.weigh(answers)
    assert weights.shape == (runs, 4)
    ratio = np.exp(weights - weights[:, 1:2])
    # the least likely candidates are likely so seldom that a mean of ratios says little
    near = np.flatnonzero(ratio.std(axis=0) < 20.0)
    assert 3 in near or name == "power vectors"
    off = np.abs(ratio.mean(axis=0) - 1.0) / (ratio.std(axis=0) / np.sqrt(runs) + 1e-12)
    assert (off[near] < 5.0).all()
    assert answers.vectors(found.outputs).shape == (runs, found.outputs)
    assert found.shown.shape[0] == 4


def test_steps_are_those_of_the_guarantee() -> None:
    system = encoder()
    points = points_of(system.query_, system.checked(X[:5]))
    apart = np.abs(points[:, None] - points).max(axis=2)
    steps = candidates_of(system.query_, points).steps
    np.testing.assert_array_equal(steps, np.ceil(apart / 0.2).astype(int))
    for any_two in (classifier("response"), table(mechanism="code")):
        query = attackable_query(any_two)
        found = candidates_of(query, points_of(query, any_two.checked(X[[0, 60, 140]])))
        np.testing.assert_array_equal(found.steps, 1 - np.eye(3, dtype=int))
