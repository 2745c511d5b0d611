"""``reticent.load``: every bundle as the estimator that wrote it, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris

import reticent
from reticent.release.bundle import Bundle
from reticent.systems import ClippedDescent


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certified linear classifier: the estimator that is fitted fastest."""
    X, y = load_iris(return_X_y=True)
    fitted = reticent.CertifiedClassifier(
        epsilon=1.0,
        delta=0.0,
        k_max=2,
        classes=range(3),
        training=ClippedDescent(epochs=1, input_bound=8.0),
    )
    return fitted.fit(X, y).save(tmp_path_factory.mktemp("loading") / "bundle")


def test_a_bundle_becomes_the_estimator_that_wrote_it(bundle: Path) -> None:
    loaded = reticent.load(bundle)
    assert type(loaded) is reticent.CertifiedClassifier
    assert loaded.bundle_identity_ == Bundle.read(bundle).identity
    X = load_iris().data[:20]
    again = reticent.CertifiedClassifier.load(bundle)
    assert np.array_equal(loaded.simulate(X, seed=3).values, again.simulate(X, seed=3).values)
