"""The table of several targets: its rivals cost what ours costs, and scores are those of draws."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from papers.power.targets import codebooks, product, scores_of, split_budget
from reticent.noise import SeededSampler
from reticent.systems import CodeEncoder
from reticent.systems.power.code_fitting import code_nodes
from reticent.systems.scores import prediction_scores


@pytest.fixture(scope="module")
def cut() -> Any:
    random = np.random.default_rng(0)
    X = random.uniform(size=(600, 2))
    Y = (X + 0.2 * random.normal(size=X.shape) > 0.5).astype(int)
    Y = np.column_stack([Y, Y[:, 0] ^ (random.random(600) < 0.3), Y[:, 1], 1 - Y[:, 0]])
    encoder = CodeEncoder(epsilon=1.0, schema=(0.0, 1.0), random_state=0)
    nodes = code_nodes(encoder.public(X, Y)[0], None, most=10)
    return SimpleNamespace(nodes=nodes, public=nodes.public, table=lambda table: (table, []))


@pytest.mark.parametrize("rival", [split_budget, product, codebooks])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_rivals_cost_what_ours_costs(cut: Any, rival: Any, epsilon: float) -> None:
    table, _ = rival(cut, epsilon)
    np.testing.assert_allclose(table.sum(axis=1), 1.0)
    losses = np.log(table.max(axis=0) / table.min(axis=0))
    assert 0.5 * epsilon < losses.max() <= epsilon * (1 + 1e-9)


def test_scores_are_exact_over_the_noise() -> None:
    random = np.random.default_rng(0)
    truth = random.integers(0, 2, size=4_000)
    chances = np.where(truth[:, None] == 1, [[0.2, 0.3, 0.5]], [[0.5, 0.3, 0.2]])
    told = np.array([[0.7, 0.3], [0.5, 0.5], [0.3, 0.7]])
    drawn = SeededSampler(0).categorical(np.repeat(chances, 20, axis=0))
    found = prediction_scores(told[drawn], np.eye(2)[np.repeat(truth, 20)])
    nats, auc = scores_of(chances, told, truth)
    assert nats == pytest.approx(found.information, abs=0.01)
    assert auc == pytest.approx(found.auc, abs=0.01)
