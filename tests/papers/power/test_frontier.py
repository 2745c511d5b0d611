"""What no private answer exceeds: against closed forms, every corner of a small program, and
random private channels.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

from papers.power.frontier import both_sides_of, limits
from reticent.core.errors import CalibrationFailed
from reticent.systems.power.channels import best_staircase
from reticent.systems.scores import channel_scores


def rising(bins: int, *, share: float = 0.24, seed: int = 0) -> np.ndarray:
    """Bins of rising shares of the second label, as a score has them."""
    random = np.random.default_rng(seed)
    chances = np.sort(random.beta(0.5, 0.5 * (1 - share) / share, bins))
    weights = random.dirichlet(np.full(bins, 3.0))
    return weights[:, None] * np.column_stack([1 - chances, chances])


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0])
def test_what_is_as_balanced_as_can_be_is_one_bit_about_the_side(epsilon: float) -> None:
    """By hand: the side of the label's share, right with probability e^eps / (1 + e^eps)."""
    joint = rising(10)
    found = limits(joint, epsilon=epsilon)
    share = joint[:, 1].sum()
    upper = joint[:, 1] / joint.sum(axis=1) > share
    found_upper, false_upper = joint[upper, 1].sum() / share, joint[upper, 0].sum() / (1 - share)
    right = math.exp(epsilon) / (1 + math.exp(epsilon))
    hits, alarms = (right * part + (1 - right) * (1 - part) for part in (found_upper, false_upper))
    balanced = 0.5 * (hits + 1 - alarms)
    for name in ("most nats, as balanced", "most accuracy, as balanced"):
        assert found[name].balanced_accuracy == pytest.approx(balanced, abs=1e-6)
        assert found[name].auc == pytest.approx(balanced, abs=1e-4)
        guess = max(share * hits, (1 - share) * alarms) + max(
            share * (1 - hits), (1 - share) * (1 - alarms)
        )
        assert found[name].accuracy == pytest.approx(guess, abs=1e-4)
    # At a small epsilon the two are one table, and differ by rounding.
    assert found["most nats"].information > found["most nats, as balanced"].information - 1e-12


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_the_optimum_is_the_best_of_all_corners(epsilon: float) -> None:
    """Of three bins: every set of columns that can be a corner of the program is solved for."""
    joint = rising(3, seed=2)
    prior = joint.sum(axis=0)
    low = math.exp(-epsilon)
    columns = np.array([p for p in itertools.product((1.0, low), repeat=3) if len(set(p)) == 2])
    together = columns @ joint
    balanced = (together / prior).max(axis=1) / 2
    nats = (together * np.log(together / together.sum(axis=1, keepdims=True) / prior)).sum(axis=1)
    top = channel_scores(
        best_staircase(joint, epsilon=epsilon, scoring="balanced_accuracy").T @ joint
    ).balanced_accuracy
    for margin in (0.002, 0.01, 0.5):
        floor = top - margin
        # Three rows of the channel sum to 1, and the balanced accuracy less its floor is a slack.
        left = np.vstack([columns.T, balanced])
        left = np.column_stack([left, [0.0, 0.0, 0.0, -1.0]])
        right = np.array([1.0, 1.0, 1.0, floor])
        worth = np.append(nats, 0.0)
        corners = []
        for basis in itertools.combinations(range(left.shape[1]), 4):
            part = left[:, basis]
            if abs(np.linalg.det(part)) > 1e-9:
                weights = np.linalg.solve(part, right)
                if weights.min() >= -1e-9:
                    corners.append(float(weights @ worth[list(basis)]))
        channel = best_staircase(
            joint,
            epsilon=epsilon,
            scoring="information",
            floors={"balanced_accuracy": floor},
        )
        found = channel_scores(channel.T @ joint)
        assert found.information == pytest.approx(max(corners), abs=1e-6)
        assert found.balanced_accuracy >= floor - 1e-6


def test_no_private_channel_that_was_tried_has_more_of_both() -> None:
    """Channels of any columns within the factor, not staircases alone."""
    joint, epsilon = rising(4, seed=3), 2.0
    random, tried = np.random.default_rng(1), 0
    for _ in range(60):
        columns = np.exp(epsilon * np.hstack([random.random((4, 30)), np.eye(4)]))
        weights = linprog(random.random(34), A_eq=columns, b_eq=np.ones(4), bounds=(0, None))
        rival = channel_scores(((columns * weights.x)[:, weights.x > 1e-9]).T @ joint)
        best = best_staircase(
            joint,
            epsilon=epsilon,
            scoring="information",
            floors={"balanced_accuracy": rival.balanced_accuracy},
        )
        found = channel_scores(best.T @ joint)
        assert found.balanced_accuracy >= rival.balanced_accuracy - 1e-6
        assert found.information >= rival.information - 1e-9
        tried += rival.information > 0.2 * found.information
    assert tried > 5


def test_floors_that_no_channel_reaches_are_refused() -> None:
    with pytest.raises(CalibrationFailed, match="lower the floors"):
        best_staircase(rising(4), epsilon=1.0, scoring="information", floors={"accuracy": 0.99})


def test_bins_are_on_one_side_each() -> None:
    random = np.random.default_rng(0)
    labels = (random.random(4_000) < 0.3).astype(np.int64)
    scores = (2 * labels + random.normal(size=4_000))[:, None] - 1.5
    joint = both_sides_of(scores, labels, bins=6)
    assert len(joint) == 6
    sizes = joint.sum(axis=1)
    place = np.log(labels.mean() / (1 - labels.mean()))
    assert sizes[:3].sum() == pytest.approx((scores < place).mean(), abs=1e-3)
