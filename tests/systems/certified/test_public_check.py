"""A model that is worth nothing is said to be, by public rows alone."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from reticent.systems import CertifiedClassifier, CertifiedEnsemble
from reticent.systems.certified.public_check import NoBetterThanConstant


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
