"""PosthocEncoder end to end on small data: what it costs, what it keeps, what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from torch import nn

from reticent.core import Neighborhood, Norm
from reticent.systems import Calibration, NoiseAware, PosthocEncoder

SMALL = {
    "embedder": "identity",
    "calibration": Calibration(head_epochs=2),
    "random_state": 0,
}
OURS = {**SMALL, "obfuscator": NoiseAware(outputs=2, hidden=(8,), epochs=10)}


@pytest.fixture(scope="module")
def points() -> tuple[np.ndarray, np.ndarray]:
    """Three Gaussian blobs in three dimensions, 5 apart."""
    random = np.random.default_rng(0)
    labels = np.arange(600) % 3
    centers = 5.0 * np.eye(3)
    return centers[labels] + 0.5 * random.normal(size=(600, 3)), np.array(["a", "b", "c"])[labels]


@pytest.fixture(scope="module")
def fitted(points: tuple[np.ndarray, np.ndarray]) -> PosthocEncoder:
    return PosthocEncoder(epsilon=4.0, delta=1e-5, radius=0.5, **OURS).fit(*points)


def test_released_values_carry_the_labels_and_cost_what_was_required(
    fitted: PosthocEncoder, points
) -> None:
    answer = fitted.release(points[0])
    predicted = fitted.classes_[np.maximum(fitted.head_.predict(answer.values), 0)]
    right = (predicted == points[1]) & ~answer.withheld
    # Neighbours may be 0.5 apart at epsilon 4, the blobs are 5 apart: nearly all of the signal
    # survives.
    assert right.mean() > 0.9
    assert fitted.guarantee.epsilon <= 4.0
    assert fitted.guarantee.delta <= 1e-5
    query = fitted.query_
    identity = query.embedding.identity(query.bound.domain)
    assert fitted.guarantee.adjacency == Neighborhood(
        Norm.LINF, 0.5, "3-dimensional input space", identity
    )
    assert answer.receipt.answers == 600
    assert answer.receipt.bundle == fitted.bundle_identity_
    assert not answer.receipt.seeded


def read_linearly(encoder: PosthocEncoder, points: np.ndarray) -> float:
    """Share of the points' variance that least squares explains, of released values it has not
    seen.
    """
    released = encoder.simulate(points, seed=0).values
    half = len(points) // 2
    values = np.column_stack([released, np.ones(len(points))])
    reading, *_ = np.linalg.lstsq(values[:half], points[:half], rcond=None)
    missed = ((points[half:] - values[half:] @ reading) ** 2).sum()
    return float(1.0 - missed / ((points[half:] - points[half:].mean(axis=0)) ** 2).sum())


def test_without_labels_utility_is_what_released_values_explain_of_the_embedding(points) -> None:
    module = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    encoder = PosthocEncoder(
        epsilon=4.0, delta=0.0, radius=0.5, embedder="identity", obfuscator=module, random_state=0
    ).fit(points[0])
    assert encoder.head_ is None
    assert encoder.classes_ is None
    utility = encoder.query_.plan.utility
    assert 0 < utility < 1
    assert read_linearly(encoder, np.repeat(points[0], 20, axis=0)) == pytest.approx(
        utility, abs=0.05
    )
