"""What is no bundle of a posthoc encoder is not read as one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from sklearn.datasets import load_iris

from reticent import PosthocEncoder
from reticent.core.errors import CorruptBundle, InvalidInput, NotFittedYet
from reticent.release.bundle import Bundle
from reticent.systems.loading import load
from tests.client.conftest import rows_bundle, vectors_bundle

__all__ = ["rows_bundle", "vectors_bundle"]

X = load_iris().data[:20]


def test_another_bundle_is_refused(rows_bundle: Path, vectors_bundle: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        load(rows_bundle, embedder=object())
    with pytest.raises(NotFittedYet):
        PosthocEncoder(epsilon=1.0, delta=0.0, radius=0.1).release(X)
    stored = Bundle.read(vectors_bundle)
    replace(stored, system="PosthocClassifier").write(tmp_path / "labels")
    with pytest.raises(CorruptBundle, match="none of this system's"):
        load(tmp_path / "labels")
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
            load(tmp_path / str(place))
