"""Which of the codes that were scored may be chosen."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.systems.power.channels import Channel
from reticent.systems.power.public_models import LinearModel
from reticent.systems.power.query import PowerPlan
from reticent.systems.power.score_fitting import (
    MOST_LOST,
    FittedScores,
    ScoreCode,
    best_score_code,
    nearly_as_accurate,
    score_codes,
)
from reticent.systems.power.score_query import ScoreBins
from reticent.systems.power.scoring import Scores, channel_scores, joint_of
from reticent.systems.power.tasks import Tasks
from reticent.tables import TabularSchema


def code(information: float, accuracy: float, right: np.ndarray) -> ScoreCode:
    """One whose scores are known; its model and bins are not looked at."""
    scores = Scores(information=information, accuracy=accuracy, balanced_accuracy=0.5, auc=0.5)
    shares = np.full((2, 2), 2**31)
    fitted = FittedScores(LinearModel(np.ones((1, 1)), np.zeros(1)), np.zeros((4, 1)))
    channel = Channel("staircase", shares, scores)
    return ScoreCode(fitted, ScoreBins(np.zeros((1, 1)), 1), channel, right)


def test_by_information_no_code_is_chosen_that_loses_accuracy() -> None:
    """Where the same rows are right, chance does not excuse a loss."""
    right = np.full(900, 0.7)
    best, near = code(0.10, 0.70, right), code(0.12, 0.70 - 0.9 * MOST_LOST, right)
    far = code(0.13, 0.70 - 1.1 * MOST_LOST, right)
    assert nearly_as_accurate([best, near, far]) == [best, near]
    assert nearly_as_accurate([far]) == [far]


@pytest.mark.parametrize(("gap", "kept"), [(0.9, True), (1.1, False)])
def test_a_loss_of_half_a_standard_error_is_excused(gap: float, kept: bool) -> None:
    """Two fifths of 400 rows change by half from right to wrong, or back: an error of 0.0158."""
    right = np.full(400, 0.5)
    other = right.copy()
    other[:80], other[80:160] = 1.0, 0.0
    half = 0.5 * 0.5 * np.sqrt(0.4) / 20
    best, second = code(0.1, 0.7, right), code(0.2, 0.7 - gap * half, other)
    assert half > MOST_LOST
    assert (second in nearly_as_accurate([best, second])) is kept


@pytest.mark.parametrize("classes", [2, 3])
def test_how_likely_rows_are_right_adds_up_to_the_accuracy(classes: int) -> None:
    random = np.random.default_rng(0)
    labels = random.integers(0, classes, 2_000)
    scores = random.normal(size=(2_000, 1 if classes == 2 else classes))
    scores[np.arange(2_000), 0 if classes == 2 else labels] += labels if classes == 2 else 2.0
    fitted = FittedScores(LinearModel(np.ones((1, 1)), np.zeros(1)), scores)
    for found in score_codes(fitted, labels, Tasks.single(classes), epsilon=3.0, scoring="auc"):
        assert found.right.mean() == pytest.approx(found.channel.scores.accuracy, abs=0.005)
        assert found.right.min() >= 0.0


def test_by_information_half_a_point_of_accuracy_is_the_most_that_is_lost() -> None:
    """One label in four, where the bit that tells most seldom changes a guess."""
    random = np.random.default_rng(0)
    labels = (random.random(8_000) < 0.24).astype(np.int64)
    scores = 2.2 * (2.2 * labels + random.normal(size=8_000))[:, None] - 2.42 + np.log(0.24 / 0.76)
    fitted = [FittedScores(LinearModel(np.ones((1, 1)), np.zeros(1)), scores)]
    found = {}
    for scoring in ("information", "accuracy", "balanced_accuracy"):
        required = PowerPlan(
            mechanism="k-norm-l2", epsilon=2.0, delta=0.0, radius=None, scoring=scoring
        )
        query, _ = best_score_code(
            TabularSchema.numbers(1, 0, 1), required, fitted, labels, tasks=Tasks.single(2)
        )
        joint = joint_of(query.bins.of(scores), labels, bins=query.bins.count)
        found[scoring] = channel_scores(query.mechanism.matrix.T @ joint)
    assert found["balanced_accuracy"].accuracy < found["accuracy"].accuracy - 2 * MOST_LOST
    assert found["information"].accuracy > found["accuracy"].accuracy - 1.2 * MOST_LOST
    assert found["information"].information > found["accuracy"].information


@pytest.mark.parametrize("scoring", ["information", "auc"])
def test_by_information_no_bin_is_on_both_sides_of_the_label_shares(scoring: str) -> None:
    random = np.random.default_rng(0)
    labels = (random.random(4_000) < 0.3).astype(np.int64)
    scores = (labels + random.normal(size=4_000))[:, None] - 1.0
    share = np.log(labels.mean() / (1 - labels.mean()))
    fitted = FittedScores(LinearModel(np.ones((1, 1)), np.zeros(1)), scores)
    codes = list(score_codes(fitted, labels, Tasks.single(2), epsilon=5.0, scoring=scoring))
    several = [code.bins.table[0] for code in codes if code.bins.count > 2]
    cut = [bool(np.isclose(table, share).any()) for table in several]
    assert max(len(table) for table in several) >= 12
    assert all(cut) is (scoring == "information")
    assert any(cut)
