"""The table of several targets: its rivals cost what ours costs, and scores are those of draws."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from papers.power.targets import codebooks, product, split_budget
from reticent.systems import CodeEncoder
from reticent.systems.power.code_fitting import code_nodes


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
