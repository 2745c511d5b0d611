"""Public models and forests as arrays: scikit-learn's own scores, rows alone and together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression

from reticent.core.coded_rows import CodedRows
from reticent.core.errors import CorruptBundle
from reticent.training.public_forest import Forest
from reticent.training.public_models import BoostedTrees, LinearModel, model_from
from reticent.training.public_pool import TargetPool


def fitted(kind: str, classes: int) -> tuple[Any, Any, np.ndarray]:
    random = np.random.default_rng(classes)
    rows = random.random((600, 5)).round(2)
    labels = np.floor(classes * rows[:, :2].mean(axis=1)).astype(int)
    labels = np.where(random.random(600) < 0.2, random.integers(0, classes, 600), labels)
    if kind == "linear":
        model: Any = LogisticRegression().fit(rows, labels)
        return model, LinearModel.from_sklearn(model), rows
    model = HistGradientBoostingClassifier(max_iter=20, max_leaf_nodes=9).fit(rows, labels)
    return model, BoostedTrees.from_sklearn(model), rows


@pytest.mark.parametrize("kind", ["boosted", "linear"])
@pytest.mark.parametrize("classes", [2, 3])
def test_scores_are_scikit_learns_and_every_row_alone(kind: str, classes: int) -> None:
    model, arrays, rows = fitted(kind, classes)
    scores = arrays.scores(CodedRows.of(rows))
    wanted = model.decision_function(rows).reshape(len(rows), -1)
    tolerance = 1e-9 if kind == "linear" else 0.0  # trees are added in the same order
    np.testing.assert_allclose(scores, wanted, rtol=0, atol=tolerance)
    alone = np.concatenate([arrays.scores(CodedRows.of(row[None])) for row in rows[:50]])
    np.testing.assert_array_equal(alone, scores[:50])
    assert (arrays.classes, arrays.dimension) == (classes, 5)
    again = model_from(kind, arrays.describe(), dimension=5)
    np.testing.assert_array_equal(again.scores(CodedRows.of(rows)), scores)


def test_trees_that_cannot_be_walked_are_refused() -> None:
    """A loop, a child and a coordinate that are not there, and a root before the first node."""
    for trees in (fitted("boosted", 2)[1], grown()[1]):
        for name, moved in (("left", -10_000), ("right", 10_000), ("feature", 9), ("roots", -1)):
            with pytest.raises(CorruptBundle):
                replace(trees, **{name: getattr(trees, name) + np.int32(moved)})
        with pytest.raises(CorruptBundle):
            replace(trees, left=np.zeros_like(trees.left))


@pytest.mark.parametrize(("leaves", "classes"), [(8, 2), (16, 3), (31, 2), (64, 3), (90, 2)])
def test_bits_of_leaves_give_the_sums_of_walks(leaves: int, classes: int) -> None:
    """Of all widths of words, and of more leaves than any; with the ones of codes, and in full."""
    random = np.random.default_rng(leaves)
    codes = np.stack([3 + random.integers(5, size=900), 8 + random.integers(9, size=900)], axis=1)
    rows = CodedRows(
        random.normal(size=(900, 3)).round(1),
        np.arange(3, dtype=np.int32),
        codes.astype(np.int32),
        0.7,
        17,
    )
    labels = (random.integers(classes, size=900) + (codes[:, 0] > 5)) % classes
    model = HistGradientBoostingClassifier(
        max_iter=9, max_leaf_nodes=leaves, min_samples_leaf=2, learning_rate=1.0
    ).fit(rows.dense(), labels)
    trees = BoostedTrees.from_sklearn(model)
    wanted = model.decision_function(rows.dense()).reshape(len(rows), -1)
    for given in (rows, CodedRows.of(rows.dense())):
        np.testing.assert_array_equal(trees.scores(given), wanted)
    # Thresholds below 0, which ones and zeros exceed, and above the ones, which none does.
    moved = replace(
        trees, threshold=trees.threshold + random.choice([-1.0, 0.0, 1.0], trees.threshold.shape)
    )
    walked = [walk(rows.dense()) for walk in moved._walks]
    sums = np.tile(moved.start, (len(rows), 1))
    for place, values in enumerate(walked):
        sums[:, place % len(moved.start)] += values
    np.testing.assert_array_equal(moved.scores(rows), sums)


def grown(
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
    model, forest, rows = grown(kind, leaf=leaf)
    shares = forest.shares(CodedRows.of(rows))
    np.testing.assert_allclose(shares, model.predict_proba(rows), rtol=0, atol=1e-12)
    alone = np.concatenate([forest.shares(CodedRows.of(row[None])) for row in rows[:40]])
    np.testing.assert_array_equal(alone, shares[:40])
    assert (forest.classes, forest.dimension) == (3, 5)
    again = Forest.from_arrays(forest.describe(), dimension=5)
    np.testing.assert_array_equal(again.shares(CodedRows.of(rows)), shares)


def test_rows_at_a_threshold_go_where_scikit_learn_sends_them() -> None:
    """Thresholds of a random forest lie between numbers; these rows lie on thresholds."""
    model, forest, _ = grown(RandomForestClassifier)
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


@pytest.mark.parametrize("model", [LogisticRegression(), RandomForestClassifier(3, random_state=0)])
def test_a_classifier_of_targets_gives_the_targets_that_it_names(model: Any) -> None:
    """And not its log odds, which no left-out prediction was compared with."""
    rows = np.random.default_rng(0).normal(size=(80, 2))
    targets = np.sign(rows[:, 0])
    pool, _ = TargetPool.fitted(rows, targets, [model])
    [weight], named = pool.weights, model.fit(rows, targets).predict(rows)
    found = (pool.offsets(rows)[:, 0] - pool.constant) / weight + pool.constant
    np.testing.assert_allclose(found, named, atol=1e-9)
