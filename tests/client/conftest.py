"""Bundles that were fitted once, and a service with some of them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sklearn.datasets import load_iris

from reticent import CertifiedClassifier, PowerEncoder
from reticent.core import Guarantee
from reticent.release.bundle import sign_bundle
from reticent.systems import ClippedDescent, VectorTraining
from reticent.systems.loading import load
from reticent.systems.value_models import train_value_model
from reticent.tables.frames import NamedRows
from tests.client.services import Running, key_files, running


@pytest.fixture(scope="session")
def rows_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of a table, any two of them neighbours; needs no torch."""
    X, y = load_iris(return_X_y=True)
    encoder = PowerEncoder(
        epsilon=4.0,
        delta=0.0,
        radius=None,
        schema=(0.0, 8.0),
        mechanism="code",
        random_state=0,
    )
    return encoder.fit(X, y).save(tmp_path_factory.mktemp("rows") / "bundle")


@pytest.fixture(scope="session")
def noisy_rows_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of a table as vectors with noise, any two of them neighbours."""
    X, y = load_iris(return_X_y=True)
    encoder = PowerEncoder(
        epsilon=4.0,
        delta=0.0,
        radius=None,
        schema=(0.0, 8.0),
        mechanism="k-norm-l2",
        training=VectorTraining(epochs=2),
        random_state=0,
    )
    return encoder.fit(X, y).save(tmp_path_factory.mktemp("noisy") / "bundle")


@pytest.fixture(scope="session")
def vectors_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Vectors of a certified network on the input itself."""
    from reticent import NoiseAware, PosthocEncoder  # they need torch, and other fixtures do not

    X, y = load_iris(return_X_y=True)
    encoder = PosthocEncoder(
        epsilon=4.0,
        delta=0.0,
        radius=0.2,
        embedder="identity",
        mechanism="laplace",
        obfuscator=NoiseAware(outputs=2, hidden=(8,), epochs=3),
        random_state=0,
    )
    return encoder.fit(X, y).save(tmp_path_factory.mktemp("vectors") / "bundle")


@pytest.fixture(scope="session")
def labels_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Labels, as words, of a certified network on the input itself."""
    from reticent import LabelAware, PosthocClassifier

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


@pytest.fixture(scope="session")
def records_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Labels from private records of ward 7, as words; columns have names."""
    data = load_iris()
    classifier = CertifiedClassifier(
        epsilon=0.5,
        delta=0.0,
        k_max=2,
        classes=data.target_names.tolist(),
        data_set="ward 7",
        training=ClippedDescent(epochs=1, input_bound=8.0),
    )
    rows = NamedRows(data.data, ("length", "width", "petal length", "petal width"))
    classifier.fit(rows, data.target_names[data.target])
    return classifier.save(tmp_path_factory.mktemp("records") / "bundle")


@pytest.fixture(scope="session")
def service(
    tmp_path_factory: pytest.TempPathFactory, records_bundle: Path, rows_bundle: Path
) -> Iterator[Running]:
    """A service with labels from records, embeddings of rows, and a model of these."""
    pytest.importorskip("uvicorn")
    pytest.importorskip("fastapi")
    pytest.importorskip("cryptography")
    folder = tmp_path_factory.mktemp("service")
    shutil.copytree(records_bundle, folder / "bundles" / "records")
    signing, public = key_files(folder, "bundles-of-the-owner")
    rows = Path(shutil.copytree(rows_bundle, folder / "bundles" / "rows"))
    sign_bundle(rows, key=signing)
    X, y = load_iris(return_X_y=True)
    encoder = load(rows)
    model = train_value_model(
        "linear",
        encoder.release(X).values,
        load_iris().target_names[y],
        seed=0,
        bundle=encoder.bundle_identity_,
        guarantee=encoder.guarantee,
    )
    model.save(folder / "models" / "species")
    adjacency = load(records_bundle).guarantee.adjacency
    total = Guarantee(500.0, 0.0, adjacency)
    with running(folder, subject="ward 7", total=total) as found:
        yield replace(found, bundles_key=public)
