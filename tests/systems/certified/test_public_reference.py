"""Public rows make models that private rows have no part in, and a check that has no part in
training.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from reticent.core.errors import InvalidInput
from reticent.release.fits import not_counted
from reticent.systems import (
    CertifiedClassifier,
    CertifiedEnsemble,
    ConvexCertifiedClassifier,
    PublicReference,
)
from reticent.systems.certified.public_check import NoBetterThanConstant

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


def rare(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    labels = (random.random(count) < 0.08).astype(int)
    return random.normal(size=(count, 2)) + 1.2 * labels[:, None], labels


@pytest.mark.filterwarnings("ignore::reticent.core.errors.PrivacyWarning")
def test_a_model_that_always_names_the_frequent_label_is_warned_of() -> None:
    X, y = rare(2000, 0)
    public_X, public_y = rare(500, 1)
    fields = {"epsilon": 0.5, "classes": [0, 1], "k_max": 5}
    silent = CertifiedClassifier(**fields)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        silent.fit(X, y)  # nothing is found out from private rows
    assert silent.public_check_ is None
    with pytest.warns(NoBetterThanConstant, match="no better than a constant"):
        warned = CertifiedClassifier(**fields).fit(X, y, public_X=public_X, public_y=public_y)
    # For the owner alone: no card, bundle, receipt or name has it.
    silent.serial_ = warned.serial_
    silent.data_set_ = warned.data_set_
    one, other = silent.bundle(), warned.bundle()
    assert warned.card().to_markdown() == other.card
    assert (one.settings, one.card, one.identity) == (other.settings, other.card, other.identity)
    assert one.arrays.keys() == other.arrays.keys()
    receipts = [system.release(X[:1]).receipt.to_dict() for system in (silent, warned)]
    for receipt in receipts:
        del receipt["identifier"]
    assert receipts[0] == receipts[1]
    # Weights of labels mend it.
    shares = {0: 0.92, 1: 0.08}
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoBetterThanConstant)
        mended = CertifiedClassifier(**fields, prevalence=shares).fit(
            X, y, public_X=public_X, public_y=public_y
        )
    assert mended.public_check_ is not None
    assert mended.public_check_.balanced > 0.65
    assert mended.members_[0].settings.class_weights == pytest.approx((8 / 92, 1.0))


def test_the_public_rows_have_no_part_in_training() -> None:
    X, y = rare(300, 0)
    fields = {"epsilon": 0.5, "classes": [0, 1], "k_max": 2, "members": 3}
    plain = CertifiedEnsemble(**fields, prevalence={0: 1, 1: 1}).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoBetterThanConstant)
        checked = CertifiedEnsemble(**fields, prevalence={0: 1, 1: 1}).fit(
            X, y, public_X=X[:9], public_y=y[:9]
        )
    for one, other in zip(plain.members_, checked.members_, strict=True):
        np.testing.assert_array_equal(one.lower[0], other.lower[0])
