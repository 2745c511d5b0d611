"""Channels are worth what they are said to be: against closed forms and random private channels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from reticent.grids.shares import WHOLE, excess
from reticent.mechanisms import AnyTwo
from reticent.mechanisms.finite_channel import whole_shares
from reticent.systems.scores import channel_scores
from reticent.training.staircases import Information, Target, Top, best_alone, response_on


def joint(bins: int, labels: int = 2, seed: int = 0) -> np.ndarray:
    table = np.random.default_rng(seed).gamma(0.7, size=(bins, labels)) + 0.01
    return table / table.sum()


def task_of(table: np.ndarray, scoring: str) -> Target:
    if scoring == "information":
        return Information(table)
    shares = table.sum(axis=0)
    return Top(table / (shares * len(shares)) if scoring == "balanced_accuracy" else table)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("scoring", ["information", "accuracy", "balanced_accuracy"])
def test_no_private_channel_that_was_tried_is_worth_more(epsilon: float, scoring: str) -> None:
    table = joint(4, 3)
    found = best_alone(task_of(table, scoring), nodes=4, epsilon=epsilon)
    best = channel_scores(found.T @ table)
    random = np.random.default_rng(1)
    rivals = [response_on(np.arange(4), epsilon=epsilon)]
    for _ in range(60):
        # Columns within the factor by what they are; weights for which rows sum to 1 exist, because
        # those of randomised response are among them.
        columns = np.exp(epsilon * np.hstack([random.random((4, 30)), np.eye(4)]))
        weights = linprog(random.random(34), A_eq=columns, b_eq=np.ones(4), bounds=(0, None))
        rivals.append((columns * weights.x)[:, weights.x > 1e-9])
    worth = [channel_scores(rival.T @ table).of(scoring) for rival in rivals]
    assert max(worth) <= best.of(scoring) + 1e-9
    assert max(worth) > 0.3 * best.of(scoring)
    assert len({round(value, 9) for value in worth}) > 1 or scoring == "accuracy"


def test_rounding_gives_next_to_nothing_away_and_repairs_what_is_not_private() -> None:
    table = response_on(np.arange(3), epsilon=2.0)
    np.testing.assert_allclose(whole_shares(table, epsilon=2.0).T / WHOLE, table, atol=1e-6)
    repaired = whole_shares(np.eye(3) * 0.94 + 0.02, epsilon=0.5)
    assert excess(repaired, repaired, lattice=AnyTwo(3), epsilon=0.5) == 0


def test_randomised_response_on_two_bins_is_worth_the_closed_form() -> None:
    # A bin that is the label, evenly split: a binary symmetric channel.
    scores = channel_scores(response_on(np.arange(2), epsilon=1.0).T @ (np.eye(2) / 2))
    right = math.e / (1 + math.e)
    capacity = math.log(2) + right * math.log(right) + (1 - right) * math.log(1 - right)
    assert scores.information == pytest.approx(capacity, abs=1e-12)
    assert scores.accuracy == scores.balanced_accuracy == pytest.approx(right)
    assert scores.auc == pytest.approx(right)
