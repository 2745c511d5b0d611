"""Channels are worth what they are said to be: against closed forms, brute force over all
staircases, random private channels, and repeated draws.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.metrics import mutual_info_score

from reticent.grids.shares import WHOLE, excess
from reticent.mechanisms import AnyTwo
from reticent.systems.power.channels import (
    RESPONSES,
    best_staircase,
    channels,
    randomised_response,
    staircase_patterns,
    subset_selection,
    whole_shares,
)
from reticent.systems.scores import channel_scores


def joint(bins: int, labels: int = 2, seed: int = 0) -> np.ndarray:
    table = np.random.default_rng(seed).gamma(0.7, size=(bins, labels)) + 0.01
    return table / table.sum()


def sorted_joint(bins: int, seed: int = 0) -> np.ndarray:
    table = joint(bins, seed=seed)
    return table[np.argsort(table[:, 1] / table.sum(axis=1))]


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("scoring", ["information", "accuracy", "balanced_accuracy"])
def test_no_private_channel_that_was_tried_is_worth_more(epsilon: float, scoring: str) -> None:
    table = joint(4, 3)
    best = channel_scores(best_staircase(table, epsilon=epsilon, scoring=scoring).T @ table)
    random = np.random.default_rng(1)
    rivals = [randomised_response(4, epsilon=epsilon)]
    rivals += [subset_selection(4, size, epsilon=epsilon) for size in (2, 3)]
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


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0])
def test_intervals_lose_little_against_all_staircases(epsilon, monkeypatch) -> None:
    table = sorted_joint(8)
    whole = channel_scores(best_staircase(table, epsilon=epsilon, scoring="information").T @ table)
    monkeypatch.setattr("reticent.systems.power.channels.ALL_SUBSETS", 4)
    assert len(staircase_patterns(8)) < 60 < 2**8 - 2
    part = channel_scores(best_staircase(table, epsilon=epsilon, scoring="information").T @ table)
    assert 0.97 * whole.information < part.information <= whole.information + 1e-9


@pytest.mark.parametrize("epsilon", [1e-3, 0.7, 5.0, 20.0, 50.0])
@pytest.mark.parametrize(("bins", "labels"), [(2, 2), (5, 2), (4, 4), (12, 2)])
def test_every_channel_is_private_between_all_bins(epsilon, bins, labels) -> None:
    found = list(channels(joint(bins, labels), epsilon=epsilon, scoring="information"))
    assert {channel.response for channel in found} <= set(RESPONSES)
    for channel in found:
        whole, shares = channel.shares, channel.shares.T
        assert (shares.sum(axis=1, dtype=np.uint64) == WHOLE).all()
        assert excess(whole, whole, lattice=AnyTwo(bins), epsilon=epsilon) == 0
        for one, other in itertools.permutations(range(bins), 2):
            loss = np.log(shares[one] / shares[other]).max()
            assert loss <= epsilon + 1e-12
        exact = channel_scores(shares.T @ joint(bins, labels) / WHOLE)
        assert channel.scores.information == pytest.approx(exact.information, rel=1e-12)
        assert channel.scores.auc == pytest.approx(exact.auc, rel=1e-12)


def test_rounding_gives_next_to_nothing_away_and_repairs_what_is_not_private() -> None:
    table = randomised_response(3, epsilon=2.0)
    np.testing.assert_allclose(whole_shares(table, epsilon=2.0).T / WHOLE, table, atol=1e-6)
    repaired = whole_shares(np.eye(3) * 0.94 + 0.02, epsilon=0.5)
    assert excess(repaired, repaired, lattice=AnyTwo(3), epsilon=0.5) == 0


def test_randomised_response_on_two_bins_is_worth_the_closed_form() -> None:
    # A bin that is the label, evenly split: a binary symmetric channel.
    scores = channel_scores(randomised_response(2, epsilon=1.0).T @ (np.eye(2) / 2))
    right = math.e / (1 + math.e)
    capacity = math.log(2) + right * math.log(right) + (1 - right) * math.log(1 - right)
    assert scores.information == pytest.approx(capacity, abs=1e-12)
    assert scores.accuracy == scores.balanced_accuracy == pytest.approx(right)
    assert scores.auc == pytest.approx(right)


def test_scores_are_those_of_many_draws() -> None:
    table, random = joint(4), np.random.default_rng(3)
    channel = best_staircase(table, epsilon=3.0, scoring="information")
    exact = channel_scores(channel.T @ table)
    cells = random.choice(8, size=200_000, p=table.ravel())
    bins, labels = cells // 2, cells % 2
    outputs = (random.random(200_000)[:, None] > np.cumsum(channel, axis=1)[bins]).sum(axis=1)
    assert mutual_info_score(labels, outputs) == pytest.approx(exact.information, abs=0.004)
