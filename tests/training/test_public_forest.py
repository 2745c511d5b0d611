"""A public forest as arrays: scikit-learn's own shares, rows alone and together, and arrays that
are refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from reticent.core.coded_rows import CodedRows
from reticent.training.public_forest import Forest


def fitted(
    kind: Any = ExtraTreesClassifier, *, classes: int = 3, leaf: int = 2
) -> tuple[Any, Forest, np.ndarray]:
    random = np.random.default_rng(classes)
    rows = random.random((500, 5))
    labels = np.floor(classes * rows[:, :2].mean(axis=1)).astype(int)
    labels = np.where(random.random(500) < 0.2, random.integers(0, classes, 500), labels)
    model = kind(12, min_samples_leaf=leaf, bootstrap=True, random_state=0).fit(rows, labels)
    return model, Forest.from_sklearn(model, classes=classes), rows


@pytest.mark.parametrize("kind", [ExtraTreesClassifier, RandomForestClassifier])
@pytest.mark.parametrize("leaf", [1, 4])
def test_shares_are_scikit_learns_and_every_row_alone(kind: Any, leaf: int) -> None:
    model, forest, rows = fitted(kind, leaf=leaf)
    shares = forest.shares(CodedRows.of(rows))
    np.testing.assert_allclose(shares, model.predict_proba(rows), rtol=0, atol=1e-12)
    alone = np.concatenate([forest.shares(CodedRows.of(row[None])) for row in rows[:40]])
    np.testing.assert_array_equal(alone, shares[:40])
    assert (forest.classes, forest.dimension) == (3, 5)
    again = Forest.from_arrays(forest.describe(), dimension=5)
    np.testing.assert_array_equal(again.shares(CodedRows.of(rows)), shares)


def test_rows_at_a_threshold_go_where_scikit_learn_sends_them() -> None:
    """Thresholds of a random forest lie between numbers; these rows lie on thresholds."""
    model, forest, _ = fitted(RandomForestClassifier)
    trees = [estimator.tree_ for estimator in model.estimators_]
    ends = np.concatenate([tree.threshold[tree.feature >= 0] for tree in trees])
    rows = np.repeat(ends[:, None], 5, axis=1)
    rows = np.concatenate([rows, np.nextafter(rows.astype(np.float32), np.float32(2))])
    np.testing.assert_allclose(
        forest.shares(CodedRows.of(rows)), model.predict_proba(rows), rtol=0, atol=1e-12
    )


def test_a_label_that_was_not_seen_has_no_share() -> None:
    random = np.random.default_rng(0)
    rows, labels = random.random((100, 2)), random.choice([0, 2], 100)
    model = ExtraTreesClassifier(5, random_state=0).fit(rows, labels)
    shares = Forest.from_sklearn(model, classes=4).shares(CodedRows.of(rows))
    np.testing.assert_allclose(shares[:, [0, 2]], model.predict_proba(rows), rtol=0, atol=1e-12)
    assert not shares[:, [1, 3]].any()
