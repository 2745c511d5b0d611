from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from reticent.accounting.private_knn import PrivateKnnSteps, private_knn_total
from reticent.accounting.private_knn_filter import PrivateKnnFilter
from reticent.core.errors import BudgetExceeded, InvalidParameter

STEPS = PrivateKnnSteps(
    queries=100_000,
    answers=100_000,
    neighbours=100,
    sampling_probability=0.2,
    sigma_votes=12.0,
    threshold=60.0,
    sigma_screening=36.0,
)


@pytest.mark.parametrize(
    "twin", [copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))]
)
def test_a_copy_has_no_room(twin: Callable[[PrivateKnnFilter], PrivateKnnFilter]) -> None:
    made = PrivateKnnFilter(STEPS, epsilon=1.0, delta=1e-5, orders=[50])
    made.ask()
    other = twin(made)
    assert made.has_room
    assert not other.has_room
    for spend in (other.ask, other.answer):
        with pytest.raises(BudgetExceeded):
            spend()
    made.answer()


def _run(passes: np.ndarray, orders: list[int], steps: PrivateKnnSteps = STEPS) -> PrivateKnnFilter:
    budget = PrivateKnnFilter(steps, epsilon=1.0, delta=1e-5, orders=orders)
    for passed in passes:
        if not budget.has_room:
            break
        budget.ask()
        if passed:
            budget.answer()
    return budget


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_what_went_through_costs_no_more_than_the_total(share: float) -> None:
    passes = np.random.default_rng(3).random(20_000) < share
    budget = _run(passes, [20, 30])
    assert not budget.has_room
    done = replace(STEPS, queries=budget.asked, answers=max(budget.answered, 1))
    spent = private_knn_total(done, delta=1e-5, interval=None).epsilon
    # The share of delta that a second order takes, and the label that is kept in reserve, leave a
    # little unspent.
    assert 0.9 < spent < 1.0


def test_queries_that_fail_leave_room_for_more() -> None:
    few, many = (_run(np.full(20_000, passed), [25]) for passed in (True, False))
    assert many.asked > 3 * few.asked
    assert few.answered == few.asked
    assert many.answered == 0


def test_caps_hold_too() -> None:
    budget = _run(np.ones(50, dtype=bool), [25], replace(STEPS, queries=30, answers=7))
    assert (budget.asked, budget.answered) == (7, 7)
    with pytest.raises(BudgetExceeded, match="caps are 30 queries and 7 labels"):
        budget.ask()
    assert budget.asked == 7


def test_a_label_needs_a_query_of_its_own() -> None:
    budget = PrivateKnnFilter(STEPS, epsilon=1.0, delta=1e-5, orders=[25])
    with pytest.raises(BudgetExceeded, match="call ask"):
        budget.answer()
    budget.ask()
    budget.answer()
    with pytest.raises(BudgetExceeded, match="call ask"):
        budget.answer()
    assert (budget.asked, budget.answered) == (1, 1)


def test_without_room_for_one_query_it_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="with room"):
        PrivateKnnFilter(STEPS, epsilon=1e-4, delta=1e-5, orders=[10])
    with pytest.raises(InvalidParameter, match="slack"):
        PrivateKnnFilter(STEPS, epsilon=60.0, delta=1e-5, orders=[10])
