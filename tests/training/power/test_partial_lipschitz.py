"""Scores of slope 1 in what is protected, learnt through noise or levels."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from reticent.core import Replace
from reticent.core.norms import Norm
from reticent.mechanisms import StabilityResponse
from reticent.training.power.partial_lipschitz import (
    PartialLipschitzConfig,
    PartialScores,
    side_chance,
    train_partial_scores,
    train_reader,
)

GROUPS = ((1, False), (3, True), (2, False))


def config(norm: Norm, **fields: object) -> PartialLipschitzConfig:
    """Small and fast."""
    kept = {"epsilon": 4.0, "groups": GROUPS, "answer": "noise", "outputs": 1, "hidden": 8}
    return PartialLipschitzConfig(norm=norm, **{**kept, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize("norm", [Norm.L2, Norm.LINF])
def test_slopes_are_at_most_1_and_somewhere_1(norm: Norm) -> None:
    """Against differences of scores, not of weights."""
    torch.manual_seed(0)
    scores = PartialScores(config(norm), 3).double()
    random = np.random.default_rng(1)
    free = torch.from_numpy(random.normal(size=(4_000, 3)))
    near = torch.from_numpy(random.normal(size=(4_000, 6)))
    code = random.integers(0, 3, (2, 4_000))
    moves = random.choice([-1.0, 1.0], size=(4_000, 6))
    if norm is Norm.L2:
        moves /= np.linalg.norm(moves, axis=1, keepdims=True)
        other = near + torch.from_numpy(moves)
    else:
        other = near + torch.from_numpy(moves)
        near[:, 1:4], other[:, 1:4] = (torch.eye(3).double()[which] for which in code)
    change = (scores(free, near) - scores(free, other)).abs().max().item()
    assert change <= 1.0 + 1e-9
    assert change > 0.1


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_chances_of_sides_are_those_of_the_response_between_middles(epsilon: float) -> None:
    response = StabilityResponse(classes=2, epsilon=epsilon, adjacency=Replace(1))
    middles = torch.arange(-6, 6).double() + 0.5
    right = response.right_probabilities[:6]
    wanted = np.concatenate([1.0 - right[::-1], right])
    found = side_chance(middles, epsilon=epsilon).numpy()
    assert found == pytest.approx(wanted, abs=1e-9)
    fine = side_chance(torch.linspace(-6, 6, 1001).double(), epsilon=epsilon).numpy()
    assert (np.diff(fine) >= 0).all()
    assert fine[500] == pytest.approx(0.5)


@pytest.mark.parametrize("answer", ["noise", "levels"])
def test_a_rule_that_turns_with_a_free_value_is_learnt(answer: str) -> None:
    """The label is the sign of z, turned by u: no score of z alone tells anything."""
    random = np.random.default_rng(0)
    turned = random.choice([-1.0, 1.0], 2_000)
    near = random.uniform(-4, 4, (2_000, 1))
    labels = (near[:, 0] * turned > 0).astype(np.int64)
    free = np.column_stack([np.ones(2_000), turned])
    settings = config(
        Norm.LINF, groups=((1, False),), answer=answer, epochs=15, batch_size=100, hidden=16
    )
    trained = train_partial_scores(free, near, labels, settings, whole=2**14)
    # A model of the noisy answer is right on about 1 - E e^(-4 |z|) / 2 of the rows.
    assert trained.loss < 0.5 < math.log(2)
    assert all(np.abs(matrix).sum(axis=1).max() <= 2**14 for matrix in trained.weights)
    assert trained.shifts.output_dimension == 33
    assert trained.model.output_dimension == 1


def test_readers_of_noisy_columns_learn() -> None:
    random = np.random.default_rng(0)
    near = random.uniform(-4, 4, (2_000, 2))
    labels = (near[:, 0] > 0).astype(np.int64)
    settings = config(Norm.L2, groups=((1, False),) * 2, epochs=10, batch_size=100)
    reader = train_reader(np.ones((2_000, 1)), near, labels, settings)
    found = reader.forward(np.column_stack([np.ones(2_000), near / settings.answer_unit]))
    assert ((found[:, 0] > 0) == labels).mean() > 0.9
