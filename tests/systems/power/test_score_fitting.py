"""Which of the codes that were scored may be chosen."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.systems.power.channels import Channel
from reticent.systems.power.public_models import LinearModel
from reticent.systems.power.score_fitting import (
    MOST_LOST,
    FittedScores,
    ScoreCode,
    score_codes,
    without_sides_lost,
)
from reticent.systems.power.score_query import ScoreBins
from reticent.systems.power.scoring import Scores
from reticent.systems.power.tasks import Tasks


def code(information: float, balanced: float) -> ScoreCode:
    """One whose scores are known; its model and bins are not looked at."""
    scores = Scores(information=information, accuracy=0.7, balanced_accuracy=balanced, auc=balanced)
    shares = np.full((2, 2), 2**31)
    fitted = FittedScores(LinearModel(np.ones((1, 1)), np.zeros(1)), np.zeros((4, 1)))
    return ScoreCode(fitted, ScoreBins(np.zeros((1, 1)), 1), Channel("staircase", shares, scores))


def test_by_information_no_code_is_chosen_that_loses_the_sides() -> None:
    best, near = code(0.10, 0.70), code(0.12, 0.70 - 0.9 * MOST_LOST)
    far = code(0.13, 0.70 - 1.1 * MOST_LOST)
    assert without_sides_lost([best, near, far], scoring="information") == [best, near]
    assert without_sides_lost([far], scoring="information") == [far]


@pytest.mark.parametrize("scoring", ["accuracy", "balanced_accuracy", "auc"])
def test_other_scorings_are_the_users(scoring: str) -> None:
    codes = [code(0.1, 0.7), code(0.2, 0.5)]
    assert without_sides_lost(codes, scoring=scoring) == codes


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
