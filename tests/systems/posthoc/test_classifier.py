"""PosthocClassifier end to end on small data."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from reticent.core.errors import InvalidInput
from reticent.systems import Calibration, LabelAware, PosthocClassifier, PosthocEncoder

SMALL = {"embedder": "identity", "random_state": 0}
TRAINED = {**SMALL, "classifier": LabelAware(hidden=(8,), epochs=10)}


@pytest.fixture(scope="module")
def points() -> tuple[np.ndarray, np.ndarray]:
    """Three Gaussian blobs in three dimensions, 5 apart, with labels as words."""
    random = np.random.default_rng(0)
    labels = np.arange(600) % 3
    return 5.0 * np.eye(3)[labels] + 0.5 * random.normal(size=(600, 3)), np.array(["a", "b", "c"])[
        labels
    ]


@pytest.fixture(scope="module")
def fitted(points: tuple[np.ndarray, np.ndarray]) -> PosthocClassifier:
    return PosthocClassifier(epsilon=2.0, delta=0.0, radius=0.5, **TRAINED).fit(*points)


def test_log_probabilities_of_neighbours_differ_by_at_most_epsilon(
    fitted: PosthocClassifier, points
) -> None:
    random = np.random.default_rng(1)
    here = random.uniform(-2, 7, (20_000, 3))
    there = here + random.uniform(-0.5, 0.5, here.shape)
    gap = np.log(fitted.probabilities(here)) - np.log(fitted.probabilities(there))
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
