"""Caps on telling inputs apart: against exhaustive optima, and mechanisms that reach them."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import linprog

from reticent.accounting.telling_apart import (
    beyond,
    hops,
    squared_error_floor,
    which_of_many_cap,
    which_of_two_cap,
)


def best_success(epsilons: np.ndarray, deltas: np.ndarray, outputs: int) -> float:
    """The largest success of any table of ``outputs`` answers that keeps all pairs' guarantees:
    delta is charged by one slack for each pair, output and direction.
    """
    size = len(epsilons)
    pairs = [(i, j) for i, j in itertools.permutations(range(size), 2)]
    table, slack = size * outputs, len(pairs) * outputs
    cost = np.zeros(table + slack)
    for i in range(size):
        cost[i * outputs + i] = -1.0 / size
    rows, bounds = [], []
    for place, (i, j) in enumerate(pairs):
        total = np.zeros(table + slack)
        for answer in range(outputs):
            row = np.zeros(table + slack)
            row[i * outputs + answer] = 1.0
            row[j * outputs + answer] = -math.exp(epsilons[i, j])
            row[table + place * outputs + answer] = -1.0
            rows.append(row)
            bounds.append(0.0)
            total[table + place * outputs + answer] = 1.0
        rows.append(total)
        bounds.append(deltas[i, j])
    sums = np.zeros((size, table + slack))
    for i in range(size):
        sums[i, i * outputs : (i + 1) * outputs] = 1.0
    found = linprog(cost, A_ub=rows, b_ub=bounds, A_eq=sums, b_eq=np.ones(size), bounds=(0, None))
    return -float(found.fun)


@pytest.mark.parametrize("delta", [0.0, 0.01, 0.3])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_two_inputs_the_cap_is_what_the_best_mechanism_reaches(epsilon, delta) -> None:
    apart = np.array([[0.0, epsilon], [epsilon, 0.0]])
    best = best_success(apart, delta * (apart > 0), 3)
    assert float(which_of_two_cap(epsilon, delta)) == pytest.approx(best, abs=1e-7)
    assert which_of_many_cap(apart, delta * (apart > 0)) >= best - 1e-9


def test_many_inputs_the_cap_holds_and_is_reached_where_all_are_equally_far() -> None:
    random = np.random.default_rng(0)
    for size in (2, 3, 5):
        line = np.sort(random.uniform(0, 4, size))
        apart = hops(np.abs(line[:, None] - line), 1.0).astype(float)
        best = best_success(apart, 0 * apart, size)
        assert best - 1e-9 <= which_of_many_cap(apart, 0 * apart) <= best * 1.35
        even = np.ones((size, size)) - np.eye(size)
        assert which_of_many_cap(2.0 * even, 0 * even) == pytest.approx(
            1 / (1 + (size - 1) * math.exp(-2.0)), rel=1e-9
        )
        assert best_success(2.0 * even, 0 * even, size) == pytest.approx(
            1 / (1 + (size - 1) * math.exp(-2.0)), rel=1e-7
        )


@pytest.mark.parametrize("prices", [[1.0, 0.0, 0.0], [0.1, 0.2, 0.1], [1e-9, 0.0, 0.0], None])
def test_any_prices_give_a_cap_that_holds(monkeypatch, prices) -> None:
    """A solver that stops early, or fails, costs sharpness and nothing else."""
    apart = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
    best = best_success(apart, 0 * apart, 3)
    found = None if prices is None else np.array(prices)
    monkeypatch.setattr("scipy.optimize.linprog", lambda *_, **__: SimpleNamespace(x=found))
    assert best - 1e-9 <= which_of_many_cap(apart, 0 * apart) <= 1.0


def test_steps_and_answers_add_up() -> None:
    assert hops([0.0, 1e-300, 1.0, 1.0 + 1e-9], 0.5).tolist() == [0, 1, 2, 3]
    assert hops([1e300], 1e-300)[0] > 2**61
    epsilon, delta = beyond(epsilon=0.5, delta=1e-3, hops=[0, 1, 3])
    assert epsilon.tolist() == [0.0, 0.5, 1.5]
    chain = 1e-3 * (1 + math.exp(0.5) + math.exp(1.0))
    np.testing.assert_allclose(delta, [0.0, 1e-3, chain])
    twice = beyond(epsilon=0.5, delta=1e-3, hops=[3], answers=2)
    np.testing.assert_allclose(twice, [[3.0], [2 * chain]])
    assert beyond(epsilon=5.0, delta=1e-3, hops=[400])[1].tolist() == [1.0]
    assert beyond(epsilon=800.0, delta=1e-5, hops=[0, 1, 2])[1].tolist() == [0.0, 1e-5, 1.0]


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (2.0, 0.0), (1.0, 0.1)])
def test_no_estimate_of_randomised_response_errs_less_than_the_floor(epsilon, delta) -> None:
    """Points 0 and 3; with probability delta the input is given away, else randomised response."""
    right = math.exp(epsilon) / (1 + math.exp(epsilon))
    error = (1 - delta) * 9.0 * right * (1 - right)
    floor = float(squared_error_floor(9.0, epsilon, delta))
    assert floor <= error * (1 + 1e-12)
    if delta == 0:
        assert floor == pytest.approx(error)
