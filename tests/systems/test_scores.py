"""Measures of worth against scikit-learn's, and what no library has: standard errors of paired
differences, and the simplest release within two.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn import metrics

from reticent.systems.power.held_scores import GROUPS, HeldScores, simplest
from reticent.systems.scores import (
    CRITERIA,
    SCORINGS,
    Predictions,
    channel_scores,
    criterion_of,
    joint_of,
    prediction_scores,
    probabilities_of_labels,
    row_scores,
)
from reticent.training.staircases import response_on


def drawn(classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels of unequal shares, and probabilities with ties that say something about them."""
    random = np.random.default_rng(classes)
    often = np.arange(1, classes + 1)
    labels = random.choice(classes, size=500, p=often / often.sum())
    rough = random.dirichlet(np.ones(classes), size=500) + 0.5 * np.eye(classes)[labels]
    p = (rough / rough.sum(axis=1, keepdims=True)).round(2) + 0.01
    return labels, p / p.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("classes", [2, 4])
def test_scores_are_scikit_learns(classes: int) -> None:
    labels, p = drawn(classes)
    shares = np.bincount(labels) / len(labels)
    entropy = -(shares * np.log(shares)).sum()
    given = {"y_score": p[:, 1]} if classes == 2 else {"y_score": p, "multi_class": "ovr"}
    likeliest = p.argmax(axis=1)
    oracles = {
        "accuracy": metrics.accuracy_score(labels, likeliest),
        "balanced_accuracy": metrics.balanced_accuracy_score(labels, likeliest),
        "log_loss": -metrics.log_loss(labels, p),
        "roc_auc": metrics.roc_auc_score(labels, **given),
        "brier": 1 - 0.5 * ((p - np.eye(classes)[labels]) ** 2).sum(axis=1).mean(),
        "information": entropy - metrics.log_loss(labels, p),
    }
    assert set(oracles) == set(CRITERIA)
    for name, oracle in oracles.items():
        found = criterion_of(name).of(Predictions.of(p), labels, classes=classes)
        assert found == pytest.approx(oracle, abs=1e-9), name
    chosen = (p / shares).argmax(axis=1)
    oracles["balanced_accuracy"] = metrics.balanced_accuracy_score(labels, chosen)
    oracles["auc"] = oracles["roc_auc"]
    scores = prediction_scores(p, np.eye(classes)[labels])
    for name in SCORINGS:
        assert scores.of(name) == pytest.approx(oracles[name], abs=1e-9), name


def test_a_row_that_counts_twice_is_two_rows() -> None:
    labels, p = drawn(3)
    weights = np.eye(3)[labels]
    weights[::2] *= 2
    twice = np.concatenate([np.arange(500), np.arange(500)[::2]])
    one, other = (
        prediction_scores(p, weights),
        prediction_scores(p[twice], np.eye(3)[labels[twice]]),
    )
    for name in SCORINGS:
        assert one.of(name) == pytest.approx(other.of(name))


@pytest.mark.parametrize("name", [name for name, one in CRITERIA.items() if one.proper])
def test_true_probabilities_score_best(name: str) -> None:
    truth = (np.random.default_rng(1).random(20_000) < 0.3).astype(np.int64)
    told = [np.tile([1 - share, share], (len(truth), 1)) for share in (0.2, 0.3, 0.4)]
    scores = [criterion_of(name).of(Predictions.of(p), truth, classes=2) for p in told]
    assert np.argmax(scores) == 1


def test_bare_labels_are_read_by_the_other_half() -> None:
    random = np.random.default_rng(2)
    truth = random.integers(0, 2, 20_000)
    labels = np.where(random.random(20_000) < 0.9, truth, 1 - truth)
    found = probabilities_of_labels(labels, truth, classes=2)
    assert found.sum(axis=1) == pytest.approx(1.0)
    assert found[labels == 1, 1] == pytest.approx(0.9, abs=0.01)
    # no row sees its own label: turning one round leaves its own half's probabilities alone
    other = truth.copy()
    other[0] = 1 - other[0]
    again = probabilities_of_labels(labels, other, classes=2)
    assert (again[::2] == found[::2]).all()
    assert (again[1::2] != found[1::2]).any()


def test_randomised_response_on_two_bins_is_worth_the_closed_form() -> None:
    # A bin that is the label, evenly split: a binary symmetric channel.
    scores = channel_scores(response_on(np.arange(2), epsilon=1.0).T @ (np.eye(2) / 2))
    right = math.e / (1 + math.e)
    capacity = math.log(2) + right * math.log(right) + (1 - right) * math.log(1 - right)
    assert scores.information == pytest.approx(capacity, abs=1e-12)
    assert scores.accuracy == scores.balanced_accuracy == pytest.approx(right)
    assert scores.auc == pytest.approx(right)


def test_joint_shares_are_counts_smoothed() -> None:
    found = joint_of(np.array([0, 0, 2]), np.array([5, 7, 7]), bins=3)
    assert found.shape == (3, 2)
    assert found.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(4 * found[:, 1], [1 + 1 / 6, 1 / 6, 1 + 1 / 6])


@pytest.mark.parametrize("name", CRITERIA)
def test_shares_lie_between_0_and_1_and_rise(name: str) -> None:
    values = [criterion_of(name).share(value) for value in (-3.0, -0.5, 0.0, 0.3, 0.9, 2.0)]
    assert values == sorted(values)
    assert min(values) >= 0
    assert max(values) <= 1


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("name", sorted(CRITERIA))
def test_values_of_rows_have_the_score_as_their_mean(name: str, classes: int) -> None:
    labels, p = drawn(classes)
    found = Predictions.of(p)
    values = row_scores(name, found, labels, classes=classes)
    assert values.mean() == pytest.approx(criterion_of(name).of(found, labels, classes=classes))


@pytest.mark.parametrize("name", ["accuracy", "balanced_accuracy", "roc_auc", "log_loss"])
def test_values_of_rows_have_the_standard_error_as_their_spread(name: str) -> None:
    """Against the spread of the score over 400 samples of rows with as many of each label: it is
    known to 3.5 %, so 15 % is beyond four of its standard errors.
    """
    labels, p = drawn(2)
    random = np.random.default_rng(1)
    own = row_scores(name, Predictions.of(p), labels, classes=2)
    scores = []
    for _ in range(400):
        rows = np.concatenate(
            [random.choice(np.flatnonzero(labels == k), (labels == k).sum()) for k in (0, 1)]
        )
        scores.append(row_scores(name, Predictions.of(p[rows]), labels[rows], classes=2).mean())
    within = sum((labels == k).mean() * own[labels == k].var() for k in (0, 1))
    assert np.sqrt(within / len(own)) == pytest.approx(np.std(scores), rel=0.15)
    assert own.std() / len(own) ** 0.5 >= 0.95 * np.sqrt(within / len(own))


def held(labels: np.ndarray, *, right: float, seed: int, scoring: str) -> HeldScores:
    """Of predictions that are near the label in as many rows as ``right`` says."""
    random = np.random.default_rng(seed)
    near = random.random(len(labels)) < right
    second = np.where(near == (labels == 1), 0.8, 0.2)
    return HeldScores.of(
        [np.column_stack([1 - second, second])], [np.ones(len(labels))], labels, scoring=scoring
    )


@pytest.mark.parametrize("scoring", ["accuracy", "information"])
def test_the_error_is_that_of_paired_differences(scoring: str) -> None:
    """Of means over rows the oracle is the standard error of their paired differences."""
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, 4_000)
    first, second = (held(labels, right=right, seed=1, scoring=scoring) for right in (0.7, 0.8))
    # One draw of uniform numbers decides for both: rows differ in 10 of 100.
    uniform = np.random.default_rng(1).random(4_000)
    worth = np.log(0.8 / 0.2) if scoring == "information" else 1.0
    gains = worth * ((uniform < 0.8).astype(float) - (uniform < 0.7))
    assert first.error(second) == pytest.approx(gains.std() / np.sqrt(4_000), rel=0.6)
    assert first.error(second) == second.error(first)
    assert first.error(first) == 0.0


def test_scores_are_those_of_all_answers_and_their_weights() -> None:
    labels = np.array([0, 1, 1, 0, 2])
    random = np.random.default_rng(0)
    answers = [random.dirichlet(np.ones(3), 5) for _ in range(2)]
    weights = [np.full(5, 0.25), np.full(5, 0.75)]
    found = HeldScores.of(answers, weights, labels, scoring="auc")
    one_hot = np.eye(3)[labels]
    wanted = prediction_scores(
        np.concatenate(answers), np.concatenate([w[:, None] * one_hot for w in weights])
    )
    assert found.scores == wanted
    assert found.without.shape == (GROUPS,)


@pytest.mark.parametrize("scoring", SCORINGS)
def test_the_simplest_within_two_errors_is_taken(scoring: str) -> None:
    labels = np.random.default_rng(0).integers(0, 2, 3_000)
    poor = held(labels, right=0.6, seed=1, scoring=scoring)
    good = held(labels, right=0.8, seed=1, scoring=scoring)
    assert simplest([("poor", poor), ("good", good)], scoring=scoring) == "good"
    assert simplest([("first", good), ("second", good)], scoring=scoring) == "first"
