"""Posthoc releases of vectors and labels end to end on small data: what they cost and keep."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from reticent.core import Neighborhood, Norm
from reticent.core.errors import InvalidInput
from reticent.systems import (
    Calibration,
    LabelAware,
    NoiseAware,
    PosthocClassifier,
    PosthocEncoder,
)

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


@pytest.fixture(scope="module")
def labels(points: tuple[np.ndarray, np.ndarray]) -> PosthocClassifier:
    trained = LabelAware(hidden=(8,), epochs=10)
    return PosthocClassifier(
        epsilon=2.0,
        delta=0.0,
        radius=0.5,
        embedder="identity",
        random_state=0,
        classifier=trained,
    ).fit(*points)


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


def test_log_probabilities_of_neighbours_differ_by_at_most_epsilon(
    labels: PosthocClassifier, points
) -> None:
    random = np.random.default_rng(1)
    here = random.uniform(-2, 7, (20_000, 3))
    there = here + random.uniform(-0.5, 0.5, here.shape)
    gap = np.log(labels.probabilities(here)) - np.log(labels.probabilities(there))
    assert np.abs(gap).max() <= 2.0
    assert np.abs(gap).max() > 0.5  # the bound is used, not merely kept


def test_local_path_tests_first_and_withholds(points, tmp_path) -> None:
    # Logits flat away from a steep ramp at 0, as in the encoder's test.
    module = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2))
    with torch.no_grad():
        module[0].weight.copy_(torch.tensor([[10.0, 0.0, 0.0], [10.0, 0.0, 0.0], [0.02, 0.0, 0.0]]))
        module[0].bias.copy_(torch.tensor([0.5, -0.5, 10.0]))
        module[2].weight.copy_(torch.tensor([[2.0, -2.0, 1.0], [-2.0, 2.0, 0.0]]))
        module[2].bias.copy_(torch.tensor([-12.0, 0.0]))
    random = np.random.default_rng(1)
    side = np.sign(random.normal(size=(900, 1)))
    calm = np.concatenate(
        [side * random.uniform(3, 6, (900, 1)), random.uniform(-1, 1, (900, 2))], axis=1
    )
    steep = np.concatenate(
        [random.uniform(-0.1, 0.1, (100, 1)), random.uniform(-1, 1, (100, 2))], axis=1
    )
    X = np.concatenate([calm, steep])
    y = (X[:, 0] < 0).astype(int)
    classifier = PosthocClassifier(
        epsilon=1.0,
        delta=1e-3,
        radius=0.1,
        embedder="identity",
        classifier=module,
        mechanism="noisy-max",
        calibration=Calibration(path="local"),
        random_state=0,
    ).fit(X, y)
    assert classifier.query_.plan.path == "local"
    far, near = classifier.release(calm), classifier.release(steep)
    assert not far.withheld.any()
    assert near.withheld.mean() > 0.9
    assert (near.values[near.withheld] == -1).all()
    loaded = PosthocClassifier.load(classifier.save(tmp_path / "labels"))
    np.testing.assert_array_equal(
        loaded.simulate(X, seed=2).values, classifier.simulate(X, seed=2).values
    )
    np.testing.assert_array_equal(loaded.classes_, classifier.classes_)
    with pytest.raises(InvalidInput, match="holds a PosthocClassifier"):
        PosthocEncoder.load(tmp_path / "labels")
