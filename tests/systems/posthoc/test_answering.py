"""What a device reads of a posthoc bundle is what the estimator would answer, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris

from reticent import PosthocEncoder
from reticent.core.errors import CorruptBundle, InvalidInput, NotFittedYet
from reticent.release.bundle import Bundle
from reticent.systems.loading import load, load_answering
from tests.client.conftest import labels_bundle, rows_bundle, vectors_bundle

__all__ = ["labels_bundle", "rows_bundle", "vectors_bundle"]

X = load_iris().data[:20]


@pytest.mark.parametrize("name", ["vectors_bundle", "labels_bundle"])
def test_it_answers_as_the_estimator_does(name: str, request: pytest.FixtureRequest) -> None:
    folder = request.getfixturevalue(name)
    stored, fitted = load_answering(folder), load(folder)
    assert type(stored) is type(fitted)
    assert stored.bundle_identity_ == fitted.bundle_identity_
    assert stored.bundle().same_content(fitted.bundle())
    assert (stored.card(), stored.guarantee) == (fitted.card(), fitted.guarantee)
    mine, theirs = stored.simulate(X, seed=5), fitted.simulate(X, seed=5)
    assert mine.values.tolist() == theirs.values.tolist()
    assert mine.columns == theirs.columns
    assert np.array_equal(stored.exact(X), fitted.exact(X))
    assert stored.n_features_in_ == 4
    with pytest.raises(InvalidInput, match="features"):
        stored.release(X[:, :3])


def test_another_bundle_is_refused(rows_bundle: Path, vectors_bundle: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        load_answering(rows_bundle, embedder=object())
    with pytest.raises(NotFittedYet):
        PosthocEncoder(epsilon=1.0, delta=0.0, radius=0.1).release(X)
    stored = Bundle.read(vectors_bundle)
    replace(stored, system="PosthocClassifier").write(tmp_path / "labels")
    with pytest.raises(CorruptBundle, match="none of this system's"):
        load_answering(tmp_path / "labels")
    for place, settings in enumerate(
        (
            {**stored.settings, "input_shape": [5]},
            {**stored.settings, "labels": None, "feature_names": ["a"]},
            {**stored.settings, "more": 1},
            {name: value for name, value in stored.settings.items() if name != "plan"},
        )
    ):
        replace(stored, settings=settings).write(tmp_path / str(place))
        with pytest.raises(CorruptBundle):
            load_answering(tmp_path / str(place))
