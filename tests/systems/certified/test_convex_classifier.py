"""A certified logistic regression, from fit to booked answers and back from disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reticent.core.errors import InvalidParameter
from reticent.systems import ConvexCertifiedClassifier


def blobs(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, count)
    return random.normal(size=(count, 2)) + np.where(labels == 1, 1.0, -1.0)[:, None], labels


def classifier(**fields: Any) -> ConvexCertifiedClassifier:
    return ConvexCertifiedClassifier(
        **{"epsilon": 0.1, "classes": [0, 1], "norm_bound": 4.0, "data_set": "blobs", **fields}
    )


def test_public_prevalence_makes_a_rare_label_count(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    y = (random.random(4000) < 0.05).astype(int)
    X = random.normal(size=(4000, 2)) + 0.8 * y[:, None]
    names = np.where(y == 1, "ill", "well")
    fields = {"classes": ["ill", "well"], "regularization": 1.0}
    plain = classifier(**fields).fit(X, names)
    weighted = classifier(**fields, prevalence={"well": 0.95, "ill": 0.05}).fit(X, names)
    found = [(part.exact_predict(X) == "ill")[y == 1].mean() for part in (plain, weighted)]
    assert found[0] < 0.05
    assert found[1] > 0.5
    assert weighted.members_[0].settings.class_weights == pytest.approx((1.0, 1 / 19))
    loaded = ConvexCertifiedClassifier.load(weighted.save(tmp_path / "bundle"))
    assert loaded.prevalence == {"ill": 0.05, "well": 0.95}
    assert "weights of labels" in loaded.card().to_markdown()
    with pytest.raises(InvalidParameter, match="prevalence"):
        classifier(**fields, prevalence={"ill": 0.05}).fit(X, names)
