"""Codes that are made and compared on public rows."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.systems.power.score_choice import FittedScores
from reticent.systems.power.score_fitting import both_sides, score_codes
from reticent.training.public_models import LinearModel


@pytest.mark.parametrize("classes", [2, 3])
def test_how_likely_rows_are_right_adds_up_to_the_accuracy(classes: int) -> None:
    random = np.random.default_rng(0)
    labels = random.integers(0, classes, 2_000)
    scores = random.normal(size=(2_000, 1 if classes == 2 else classes))
    scores[np.arange(2_000), 0 if classes == 2 else labels] += labels if classes == 2 else 2.0
    fitted = FittedScores(LinearModel(np.ones((1, 1)), np.zeros(1)), scores)
    for found in score_codes(fitted, labels, epsilon=3.0, scoring="auc"):
        assert found.rows.accuracy.mean() == pytest.approx(found.channel.scores.accuracy, abs=0.005)
        assert found.rows.accuracy.min() >= 0.0


def test_even_odds_are_the_end_of_a_bin_where_guesses_change() -> None:
    random = np.random.default_rng(0)
    for share in (0.2, 0.8):
        labels = (random.random(4_000) < share).astype(np.int64)
        scores = (2 * labels + random.normal(size=4_000))[:, None] - 1.0
        [bins] = both_sides(scores, labels, size=3)
        assert 0.0 in bins.table[0]
        assert bins.count == 6
        [two] = both_sides(scores, labels, size=1)
        mean = labels.mean()
        assert two.table[0] == pytest.approx([np.log(mean / (1 - mean))])


@pytest.mark.parametrize("scoring", ["information", "auc"])
def test_by_information_no_bin_is_on_both_sides_of_the_label_shares(scoring: str) -> None:
    random = np.random.default_rng(0)
    labels = (random.random(4_000) < 0.3).astype(np.int64)
    scores = (labels + random.normal(size=4_000))[:, None] - 1.0
    share = np.log(labels.mean() / (1 - labels.mean()))
    fitted = FittedScores(LinearModel(np.ones((1, 1)), np.zeros(1)), scores)
    codes = list(score_codes(fitted, labels, epsilon=5.0, scoring=scoring))
    several = [code.bins.table[0] for code in codes if code.bins.count > 2]
    cut = [bool(np.isclose(table, share).any()) for table in several]
    assert max(len(table) for table in several) >= 12
    assert all(cut) is (scoring == "information")
    assert any(cut)
