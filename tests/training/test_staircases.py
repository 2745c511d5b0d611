"""Channels priced by duals against all staircases, and the attacker's chance."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from reticent.training.staircases import (
    Crowd,
    Information,
    Top,
    Variance,
    best_alone,
    best_channel,
    codebook,
    response_on,
)


def joint(random: np.random.Generator, nodes: int, labels: int, masses: np.ndarray) -> np.ndarray:
    return masses[:, None] * random.dirichlet(np.full(labels, 0.4), nodes)


def targets_of(seed: int, nodes: int) -> tuple[list[Any], np.ndarray]:
    random = np.random.default_rng(seed)
    masses = random.dirichlet(np.full(nodes, 3.0))
    moments = masses[:, None] * random.normal(size=(nodes, 3))
    moments -= masses[:, None] * moments.sum(axis=0)
    return [
        Information(joint(random, nodes, 2, masses)),
        Information(joint(random, nodes, 3, masses)),
        Top(joint(random, nodes, 6, masses), 2),
        Variance(moments / 2.0, masses),
    ], masses


def exhaustive(
    targets: list[Any], nodes: int, epsilon: float, whole: list[float], crowd: Crowd | None
) -> float:
    """The largest least share over all 2^n - 2 staircases."""
    low = math.exp(-epsilon)
    sets = (np.arange(1, 2**nodes - 1)[:, None] >> np.arange(nodes)) & 1 == 1
    columns = np.where(sets, 1.0, low)
    rows = [np.append(-t.value(columns), own) for t, own in zip(targets, whole, strict=True)]
    ends = [0.0] * len(rows)
    if crowd is not None:
        rows.append(np.append(crowd.guesses(sets, low), 0.0))
        ends.append(crowd.most)
    found = linprog(
        np.append(np.zeros(len(sets)), -1.0),
        A_eq=np.column_stack([columns.T, np.zeros(nodes)]),
        b_eq=np.ones(nodes),
        A_ub=np.array(rows),
        b_ub=ends,
        method="highs",
    )
    return -float(found.fun)


@pytest.mark.parametrize(("seed", "epsilon", "most"), [(0, 1.0, None), (1, 4.0, None), (2, 3, 0.1)])
def test_equal_shares_are_those_of_all_staircases(
    seed: int, epsilon: float, most: float | None
) -> None:
    nodes = 9
    targets, masses = targets_of(seed, nodes)
    crowd = None if most is None else Crowd(masses, most)
    whole = [
        float(target.value(best_alone(target, nodes=nodes, epsilon=epsilon).T).sum())
        for target in targets
    ]
    for target, own in zip(targets, whole, strict=True):
        assert own == pytest.approx(exhaustive([target], nodes, epsilon, [1.0], None), abs=5e-5)
    found = best_channel(targets, nodes=nodes, epsilon=epsilon, whole=whole, crowd=crowd)
    assert found.worth == pytest.approx(exhaustive(targets, nodes, epsilon, whole, crowd), abs=5e-5)
    # what the table itself is worth, and what it hides
    kept = [t.value(found.table.T).sum() / own for t, own in zip(targets, whole, strict=True)]
    assert min(kept) >= found.worth - 1e-6
    assert (found.table.max(axis=0) / found.table.min(axis=0)).max() <= math.exp(epsilon) * 1.000001
    if crowd is not None:
        assert Crowd(masses).chance(found.table) <= 0.1 + 1e-6


def test_no_start_is_worth_more_than_what_is_found() -> None:
    targets, masses = targets_of(3, 30)
    tables = [target.joint / masses[:, None] for target in targets[:2]]
    starts = [
        response_on(codebook(tables, masses, codes=codes, seed=0), epsilon=2.0)
        for codes in (2, 4, 8)
    ]
    whole = [0.1, 0.1]
    found = best_channel(targets[:2], nodes=30, epsilon=2.0, whole=whole, starts=starts)
    for start in starts:
        kept = [t.value(start.T).sum() / 0.1 for t in targets[:2]]
        assert found.worth >= min(kept) - 1e-9


def test_gradients_are_tangents() -> None:
    targets, _ = targets_of(4, 7)
    columns = np.random.default_rng(5).uniform(0.2, 1.0, size=(20, 7))
    for target in targets:
        touched = (target.gradient(columns) * columns).sum(axis=1)
        np.testing.assert_allclose(touched, target.value(columns), rtol=1e-9)
        others = columns[::-1]
        below = (target.gradient(columns) * others).sum(axis=1)
        assert (below <= target.value(others) + 1e-12).all()
