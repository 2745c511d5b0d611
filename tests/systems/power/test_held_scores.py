"""Standard errors of paired differences, and the simplest release within two."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.systems.power.held_scores import GROUPS, HeldScores, simplest
from reticent.systems.scores import SCORINGS, prediction_scores


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
