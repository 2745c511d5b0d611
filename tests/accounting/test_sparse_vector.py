"""Whole runs, bit sequence by bit sequence, against their claim."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from reticent.accounting.sparse_vector import AboveThreshold


def _run_distribution(
    votes: tuple[int, ...], threshold: int, threshold_scale: float, query_scale: float
) -> np.ndarray:
    """P(the first yes is at query i) for each i, then of no yes at all, under discrete Laplace
    noise.
    """
    reach = 400
    values = np.arange(-reach, reach + 1)
    level = np.exp(-np.abs(values) / threshold_scale)
    level /= level.sum()
    distribution = np.exp(-np.abs(values) / query_scale)
    distribution /= distribution.sum()
    at_least = np.cumsum(distribution[::-1])[::-1]
    yes = [at_least[np.clip(threshold + values - vote + reach, 0, 2 * reach)] for vote in votes]
    chances, still = [], level.copy()
    for passing in yes:
        chances.append((still * passing).sum())
        still = still * (1 - passing)
    return np.array([*chances, still.sum()])


def _worst_ratio(run: AboveThreshold, query_scale: float) -> float:
    worst = 0.0
    for votes in itertools.product((3, 5, 6), repeat=4):
        base = _run_distribution(votes, 6, run.threshold_scale, query_scale)
        for moves in itertools.product((-1, 0, 1), repeat=4):
            moved = _run_distribution(
                tuple(v + m for v, m in zip(votes, moves, strict=True)),
                6,
                run.threshold_scale,
                query_scale,
            )
            worst = max(worst, float(np.abs(np.log(moved / base)).max()))
    return worst


def test_no_run_tells_more_than_claimed() -> None:
    run = AboveThreshold(0.3, 0.9)
    claim = run.run_epsilon(sampling_probability=1.0)
    assert claim == pytest.approx(1.2)
    assert 0.6 * claim < _worst_ratio(run, run.query_scale) <= claim
    # A third of the noise of the queries is caught.
    assert _worst_ratio(run, run.query_scale / 3) > claim


def test_sampling_makes_runs_cheaper_and_runs_compose() -> None:
    run = AboveThreshold(0.1, 0.2)
    one = run.run_epsilon(sampling_probability=0.15)
    assert one == pytest.approx(math.log(1 + 0.15 * (math.exp(0.3) - 1)))
    basic = run.total(runs=100, sampling_probability=0.15, delta=0.0)
    assert basic.epsilon == pytest.approx(100 * one)
    assert run.total(runs=100, sampling_probability=0.15, delta=1e-5).epsilon < basic.epsilon


def test_renyi_cost_lies_below_half_the_square_and_reaches_the_pure_cost() -> None:
    run = AboveThreshold(0.2, 0.3)
    cost = run.rdp([2.0, 8.0, 1e6], sampling_probability=1.0)
    assert np.all(cost[:2] <= np.array([2.0, 8.0]) * 0.5**2 / 2)
    assert cost[2] == pytest.approx(0.5, rel=1e-4)
