"""The four scores against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score, log_loss, roc_auc_score

from reticent.core.errors import InvalidInput, UnknownName
from reticent.systems.power.scoring import joint_of, prediction_scores


@pytest.mark.parametrize("classes", [2, 4])
def test_scores_are_scikit_learns(classes: int) -> None:
    random = np.random.default_rng(classes)
    often = np.arange(1, classes + 1)
    labels = random.choice(classes, size=500, p=often / often.sum())
    rough = random.dirichlet(np.ones(classes), size=500) + 0.5 * np.eye(classes)[labels]
    p = (rough / rough.sum(axis=1, keepdims=True)).round(2) + 0.01
    p /= p.sum(axis=1, keepdims=True)
    found = prediction_scores(p, np.eye(classes)[labels])
    shares = np.bincount(labels) / 500
    assert found.accuracy == pytest.approx(accuracy_score(labels, p.argmax(axis=1)))
    chosen = (p / shares).argmax(axis=1)
    assert found.balanced_accuracy == pytest.approx(balanced_accuracy_score(labels, chosen))
    entropy = -(shares * np.log(shares)).sum()
    assert found.information == pytest.approx(entropy - log_loss(labels, p))
    given = {"y_score": p[:, 1]} if classes == 2 else {"y_score": p, "multi_class": "ovr"}
    assert found.auc == pytest.approx(roc_auc_score(labels, **given))
    for scoring in ("information", "accuracy", "balanced_accuracy", "auc"):
        assert found.of(scoring) == getattr(found, scoring)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InvalidInput, match="expected the shape"):
        prediction_scores([[0.5, 0.5]], [[1.0, 0.0, 0.0]])
    with pytest.raises(InvalidInput, match="every label to occur"):
        prediction_scores([[0.5, 0.5]], [[1.0, 0.0]])
    with pytest.raises(UnknownName, match="scoring='f1'"):
        prediction_scores([[0.5, 0.5]], [[1.0, 1.0]]).of("f1")


def test_joint_shares_are_counts_smoothed() -> None:
    found = joint_of(np.array([0, 0, 2]), np.array([5, 7, 7]), bins=3)
    assert found.shape == (3, 2)
    assert found.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(4 * found[:, 1], [1 + 1 / 6, 1 / 6, 1 + 1 / 6])
