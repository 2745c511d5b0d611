"""Bundles that protect their input, fitted once."""

from __future__ import annotations

from pathlib import Path

import pytest
from sklearn.datasets import load_iris

from reticent import LabelAware, NoiseAware, PosthocClassifier, PosthocEncoder, PowerEncoder


@pytest.fixture(scope="session")
def rows_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of a table, any two of them neighbours; needs no torch."""
    X, y = load_iris(return_X_y=True)
    encoder = PowerEncoder(
        epsilon=4.0,
        delta=0.0,
        radius=None,
        schema=(0.0, 8.0),
        mechanism="score-code",
        random_state=0,
    )
    return encoder.fit(X, y).save(tmp_path_factory.mktemp("rows") / "bundle")


@pytest.fixture(scope="session")
def vectors_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Vectors of a certified network on the input itself."""
    X, y = load_iris(return_X_y=True)
    encoder = PosthocEncoder(
        epsilon=8.0,
        delta=0.0,
        radius=0.2,
        embedder="identity",
        obfuscator=NoiseAware(outputs=2, hidden=(8,), epochs=3),
        random_state=0,
    )
    return encoder.fit(X, y).save(tmp_path_factory.mktemp("vectors") / "bundle")


@pytest.fixture(scope="session")
def labels_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Labels, as words, of a certified network on the input itself."""
    data = load_iris()
    classifier = PosthocClassifier(
        epsilon=4.0,
        delta=0.0,
        radius=0.2,
        embedder="identity",
        classifier=LabelAware(hidden=(8,), epochs=3),
        mechanism="response",
        random_state=0,
    )
    classifier.fit(data.data, data.target_names[data.target])
    return classifier.save(tmp_path_factory.mktemp("labels") / "bundle")
