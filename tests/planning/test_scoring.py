"""Criteria agree with scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics

from reticent.core.errors import UnknownName
from reticent.planning.scoring import SCORINGS, probabilities_of_labels, scoring_of
from reticent.planning.tasks import Predictions

RANDOM = np.random.default_rng(0)
TRUTH = RANDOM.integers(0, 3, 500)
SHARES = RANDOM.dirichlet([1, 1, 1], 500) + 0.5 * np.eye(3)[TRUTH]
SHARES /= SHARES.sum(axis=1, keepdims=True)
LABELS = SHARES.argmax(axis=1)

ORACLES = {
    "accuracy": metrics.accuracy_score(TRUTH, LABELS),
    "balanced_accuracy": metrics.balanced_accuracy_score(TRUTH, LABELS),
    "log_loss": -metrics.log_loss(TRUTH, SHARES),
    "roc_auc": metrics.roc_auc_score(TRUTH, SHARES, multi_class="ovr"),
    "brier": 1 - 0.5 * ((SHARES - np.eye(3)[TRUTH]) ** 2).sum(axis=1).mean(),
    "information": metrics.log_loss(TRUTH, np.tile(np.bincount(TRUTH) / 500, (500, 1)))
    - metrics.log_loss(TRUTH, SHARES),
}


@pytest.mark.parametrize("name", SCORINGS)
def test_scores_are_those_of_scikit_learn(name):
    found = scoring_of(name).of(Predictions.of(SHARES), TRUTH, classes=3)
    assert found == pytest.approx(ORACLES[name], abs=1e-9)


def test_the_default_is_proper():
    assert next(iter(SCORINGS.values())).proper


@pytest.mark.parametrize("name", [name for name, one in SCORINGS.items() if one.proper])
def test_true_probabilities_score_best(name):
    random = np.random.default_rng(1)
    truth = (random.random(200_000) < 0.3).astype(np.int64)
    scores = []
    for share in (0.2, 0.3, 0.4):
        told = Predictions.of(np.tile([1 - share, share], (len(truth), 1)))
        scores.append(scoring_of(name).of(told, truth, classes=2))
    assert np.argmax(scores) == 1


def test_bare_labels_are_read_by_the_other_half():
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


@pytest.mark.parametrize("name", SCORINGS)
def test_shares_lie_between_0_and_1_and_rise(name):
    scoring = scoring_of(name)
    values = [scoring.share(value) for value in (-3.0, -0.5, 0.0, 0.3, 0.9, 2.0)]
    assert values == sorted(values)
    assert min(values) >= 0
    assert max(values) <= 1


def test_unknown_criteria_are_refused():
    with pytest.raises(UnknownName, match="scoring"):
        scoring_of("f1")
