"""Tables of codes: cuts that share no row, exact scores, rivals at our cost, and what is sent along
within a radius.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from papers.power.code_methods import scored
from papers.power.code_splits import Split, split
from papers.power.parts import for_tuning
from papers.power.targets import codebooks, product, split_budget
from papers.power.within import (
    free_columns,
    rung,
    sided,
)
from reticent.datasets.table import Table
from reticent.noise import SeededSampler
from reticent.systems import CodeEncoder, train_server
from reticent.systems.power.code_fitting import code_nodes
from reticent.systems.scores import prediction_scores
from reticent.tables import Categorical, Numeric, TabularSchema
from reticent.training.staircases import response_on


def test_parts_of_a_cut_share_no_row() -> None:
    part = split("wine", seed=0, tuning=False)
    rows = np.concatenate([part.public[0], part.private[0], part.test[0]])
    assert len(np.unique(rows, axis=0)) == len(rows) == 178
    held = split("wine", seed=0, tuning=True)
    tried = np.concatenate([held.public[0], held.private[0], held.test[0]])
    assert len(tried) == 142
    # The test rows of the cut are not read.
    assert not (tried[:, None] == part.test[0][None]).all(axis=2).any()


ROWS = np.arange(40.0).reshape(20, 2)
TABLE = Table(
    "toy",
    ("a", "b"),
    ROWS[:15],
    np.arange(15) % 2,
    ROWS[15:],
    np.arange(5) % 2,
    ("no", "yes"),
    "made by hand",
)


def test_tuning_never_sees_the_held_out_part() -> None:
    tuning = for_tuning(TABLE)
    seen = {tuple(row) for row in np.concatenate([tuning.train_rows, tuning.test_rows])}
    assert seen == {tuple(row) for row in TABLE.train_rows}
    assert len(tuning.test_rows) == 3
    assert TABLE.classes == 2


def test_scores_are_the_mean_over_draws_of_the_noise() -> None:
    part = split("breast-cancer", seed=0, tuning=False)
    channel = response_on(np.arange(2), epsilon=2.0)
    private, tested = channel[part.private[1]], channel[part.test[1]]
    drawn = []
    for seed in range(400):
        server = train_server(
            "channel",
            np.eye(2)[SeededSampler(10_000 + seed).categorical(private)],
            part.private[1],
            seed=0,
            channel=channel,
        )
        found = server.predict_proba(np.eye(2)[SeededSampler(20_000 + seed).categorical(tested)])
        right = (part.test[1][:, None] == server.classes).astype(float)
        drawn.append(prediction_scores(found, right, shares=server.shares).accuracy)
    spread = np.std(drawn, ddof=1)
    assert spread > 0.02  # what one draw of the held-out rows' noise is off by
    exact = scored(private, tested, part, channel)["accuracy"]
    assert exact == pytest.approx(channel[0, 0], abs=1e-12)
    assert abs(np.mean(drawn) - exact) < 4 * spread / 20


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


LABELS = np.random.default_rng(0).integers(0, 2, size=900)


def mixed() -> Split:
    """A category that is the label nine times in ten, and a number that is noise."""
    random = np.random.default_rng(1)
    told = np.where(random.random(900) < 0.9, LABELS, 1 - LABELS)
    rows = np.empty((900, 2), dtype=object)
    rows[:, 0], rows[:, 1] = np.array(["a", "b"])[told], random.random(900)
    schema = TabularSchema((Categorical("kind", ("a", "b")), Numeric("size", 0, 1)))
    parts = [(rows[part], LABELS[part]) for part in np.split(np.arange(900), 3)]
    return Split(schema, *parts, 0)


def test_what_neighbours_share_is_sent_as_it_is_and_nothing_else() -> None:
    part = mixed()
    rows = part.test[0]
    seen = free_columns(part, rows)
    assert seen.shape == (300, 3)
    np.testing.assert_array_equal(seen[:, 1] > 0, rows[:, 0] == "a")
    moved = rows.copy()
    moved[:, 1] = 0.5  # a neighbour's, or not even that
    np.testing.assert_array_equal(free_columns(part, moved), seen)
    np.testing.assert_array_equal(rung(part, 1.0, name="clear alone").tested, seen)


def test_one_bit_about_two_labels_is_answered_as_often_rightly_as_it_should() -> None:
    """The number is the label here, and the category says nothing of it: randomised response on
    what is nearly always right.
    """
    part = mixed()
    random = np.random.default_rng(3)
    parts = []
    for table, labels in (part.public, part.private, part.test):
        rows = table.copy()
        rows[:, 0] = random.choice(["a", "b"], len(rows))
        rows[:, 1] = 0.5 * labels + 0.5 * random.random(len(rows))
        parts.append((rows, labels))
    found = sided(Split(part.schema, *parts, 0), 2.0)
    named, labels = found.private[:, -2:].argmax(axis=1), parts[1][1]
    assert found.private.shape == (300, 1 + 2 + 2 + 2)
    right = np.exp(2.0) / (1.0 + np.exp(2.0))
    assert (named == labels).mean() == pytest.approx(right, abs=0.07)
    sure = sided(Split(part.schema, *parts, 0), 12.0).private[:, -2:].argmax(axis=1)
    assert (sure == labels).mean() > 0.97
