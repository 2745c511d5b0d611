"""No record is charged beyond its cap, and a copy lets nobody in."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from reticent.accounting import IndividualFilter
from reticent.core.errors import BudgetExceeded, InvalidInput, InvalidParameter
from tests.together import in_forks


@pytest.mark.parametrize("seed", range(20))
def test_random_answers_against_a_count_of_python_integers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cap = int(rng.integers(5, 40))
    budget = IndividualFilter(cap=cap)
    spent: list[int] = []
    for _ in range(200):
        if rng.random() < 0.1:
            numbers = budget.more(2)
            assert numbers.tolist() == [len(spent), len(spent) + 1]
            spent += [0, 0]
        chosen = np.flatnonzero(rng.random(len(spent)) < 0.5)
        costs = rng.integers(0, 12, size=len(chosen))
        inside = budget.admit(chosen, costs)
        for number, cost, admitted in zip(chosen, costs, inside, strict=True):
            assert admitted == (spent[number] + cost <= cap)
            spent[number] += int(cost) * bool(admitted)
        assert max(spent, default=0) <= cap
    assert budget.room(np.arange(len(spent))).tolist() == [cap - one for one in spent]


def test_a_cost_near_the_end_of_int64_does_not_wrap() -> None:
    budget = IndividualFilter(cap=2**62)
    numbers = budget.more(1)
    assert budget.admit(numbers, np.array([2**62])).tolist() == [True]
    assert budget.admit(numbers, np.array([2**62])).tolist() == [False]
    assert budget.admit(numbers, np.array([0])).tolist() == [True]


def test_a_number_counts_once_in_an_answer_and_costs_give_nothing_back() -> None:
    budget = IndividualFilter(cap=10)
    numbers = budget.more(3)
    for records, costs, message in (
        (numbers[[0, 1, 0]], np.array([6, 6, 6]), "at most once"),
        (numbers, np.array([1, 1, -1]), "at least 0"),
    ):
        with pytest.raises(InvalidInput, match=message):
            budget.admit(records, costs)
    assert budget.room(numbers).tolist() == [10, 10, 10]
    assert budget.admit(numbers[[2, 0]], np.array([10, 11])).tolist() == [True, False]


@pytest.mark.parametrize(
    "way", [copy.copy, copy.deepcopy, lambda budget: pickle.loads(pickle.dumps(budget))]
)
def test_a_copy_admits_nobody(way) -> None:
    budget = IndividualFilter(cap=3)
    numbers = budget.more(1)
    twin = way(budget)
    assert budget.is_here
    assert not twin.is_here
    with pytest.raises(BudgetExceeded, match="forked or copied filter"):
        twin.admit(numbers, np.array([1]))
    assert budget.admit(numbers, np.array([3])).tolist() == [True]


def test_a_forked_child_admits_nobody() -> None:
    budget = IndividualFilter(cap=3)
    assert in_forks(lambda: budget.is_here) == [False]


def test_caps_out_of_range_are_refused() -> None:
    with pytest.raises(InvalidInput, match="at most 2"):
        IndividualFilter(cap=2**62 + 1)
    with pytest.raises(InvalidParameter, match="cap=0"):
        IndividualFilter(cap=0)
