"""``reticent.load``: every bundle as the estimator that wrote it, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris

import reticent
from reticent.core.errors import CorruptBundle, InvalidInput
from reticent.release.bundle import Bundle
from reticent.systems import ClippedDescent
from reticent.systems.loading import load


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


def test_what_is_no_bundle_is_refused(bundle: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="expected a bundle folder, found none"):
        load(tmp_path / "none")
    oracle = Bundle("Oracle", {}, {"w": np.zeros(1)}, "").write(tmp_path / "oracle")
    with pytest.raises(InvalidInput, match="holds a Oracle, which no installed package knows"):
        load(oracle)
    damaged = Bundle.read(bundle).write(tmp_path / "damaged")
    (damaged / "card.md").write_text("a better guarantee", encoding="utf-8")
    with pytest.raises(CorruptBundle, match=r"card\.md does not match its checksum"):
        load(damaged)
