"""The convex certificate beside public models: neighbours by brute force, what private rows have no
part in, and bundles.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from reticent.core.errors import InvalidInput
from reticent.release.fits import not_counted
from reticent.systems import (
    ConvexCertifiedClassifier,
    PublicReference,
)

RANDOM = np.random.default_rng(0)
PUBLIC = RANDOM.normal(size=(90, 3))
PUBLIC_Y = (PUBLIC[:, 0] > 0.3).astype(int) + (PUBLIC[:, 1] > 0.5)
ROWS = RANDOM.normal(size=(40, 3))
LABELS = (ROWS[:, 0] + 0.7 * RANDOM.normal(size=40) > 0).astype(int) + (ROWS[:, 2] > 1.0)
QUERIES = RANDOM.normal(size=(60, 3))
FIT = {"public_X": PUBLIC, "public_y": PUBLIC_Y}


def made(reference: PublicReference | None = None, **fields: Any) -> ConvexCertifiedClassifier:
    given: dict[str, Any] = {
        "epsilon": 1.0,
        "classes": [0, 1, 2],
        "regularization": 0.5,
        "features": reference or PublicReference(models=[LogisticRegression()], rows="embedding"),
    }
    return ConvexCertifiedClassifier(**{**given, **fields})


def fitted(X: np.ndarray, y: np.ndarray, **fields: Any) -> ConvexCertifiedClassifier:
    with not_counted("brute force over tiny data sets"):
        return made(**fields).fit(X, y, **FIT)


def test_private_rows_have_no_part_in_public_models(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = fitted(ROWS[:0], LABELS[:0]), fitted(ROWS, LABELS)
    first, second = (part.extractor_.describe()[1] for part in (few, many))
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name])
    for count in (1, 17, 40):
        np.testing.assert_array_equal(
            many.extractor_.embed(ROWS)[:count], many.extractor_.embed(ROWS[:count])
        )


def test_without_records_the_public_models_answer() -> None:
    nobody = fitted(ROWS[:0], LABELS[:0])
    logs = nobody.extractor_.embed(QUERIES)[:, -3:]
    np.testing.assert_array_equal(nobody.exact_predict(QUERIES), logs.argmax(axis=1))
    far = nobody.stable_distances(QUERIES)[1]
    assert far.max() >= 1  # the offset's own distance, which no one record takes away


def test_records_correct_what_public_models_do_not_know() -> None:
    rng = np.random.default_rng(1)
    X, Q = rng.normal(size=(3000, 3)), rng.normal(size=(1000, 3))
    y, truth = (part[:, 0] + part[:, 2] > 0 for part in (X, Q))
    public = {"public_X": PUBLIC, "public_y": (PUBLIC[:, 0] > 0).astype(int)}
    found = []
    for regularization in (1.0, 1e6):
        own = made(classes=[0, 1], regularization=regularization)
        own.fit(X, y.astype(int), **public)
        found.append(float((own.exact_predict(Q) == truth).mean()))
    assert found[0] > 0.95
    assert found[1] < 0.85  # lambda leads to the public models, which saw one column alone


def test_models_that_no_bundle_holds_are_refused_before_training() -> None:
    """A receipt names the bundle, so that every release would fail."""
    models = [LogisticRegression(), GaussianNB()]
    with pytest.raises(InvalidInput):
        fitted(ROWS, LABELS, features=PublicReference(models=models, rows="embedding"))
