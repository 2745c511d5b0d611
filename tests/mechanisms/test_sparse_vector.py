"""Sparse-vector screening: who is paid for, when it ends, and that a run costs what is stated."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from reticent.core import AddRemove, Guarantee
from reticent.core.errors import InvalidInput
from reticent.mechanisms import SparseVectorScreening
from reticent.noise import SecureSampler


def _screening(**changes: object) -> SparseVectorScreening:
    settings = {
        "threshold": 150,
        "epsilon_threshold": 1.0,
        "epsilon_query": 2.0,
        "limit": 2,
        "paid": "passes",
        "adjacency": AddRemove(1),
        **changes,
    }
    return SparseVectorScreening(**settings)


def test_it_ends_after_as_many_paid_outcomes_as_were_bought() -> None:
    votes = [0, 9_000, 0, 9_000, 0, 9_000]
    assert _screening().release(votes, sampler=SecureSampler()).tolist() == [0, 1, 0, 1, -1, -1]
    assert _screening(paid="fails").release(votes, sampler=SecureSampler()).tolist() == [
        0,
        1,
        0,
        -1,
        -1,
        -1,
    ]
    assert _screening(limit=9).release(votes, sampler=SecureSampler()).tolist() == [
        0,
        1,
        0,
        1,
        0,
        1,
    ]
    assert _screening().release([], sampler=SecureSampler()).shape == (0,)


def test_the_total_counts_paid_outcomes_only() -> None:
    assert _screening(limit=5).guarantee == Guarantee(15.0, 0.0, AddRemove(1))
    assert _screening(limit=5).event.guarantee == _screening(limit=5).guarantee


def _run_distribution(
    lead: tuple[int, ...], epsilon_threshold: float, epsilon_query: float
) -> dict[tuple[int, ...], float]:
    """Probability of each outcome of one run, by summing over the threshold's noise."""

    def tail(at: int, epsilon: float) -> float:
        """P(V >= at) of the discrete Laplace distribution with ratio e^-epsilon."""
        q = math.exp(-epsilon)
        return q**at / (1 + q) if at > 0 else 1 - q ** (1 - at) / (1 + q)

    distribution: dict[tuple[int, ...], float] = {}
    for noise in range(-80, 81):
        weight = tail(noise, epsilon_threshold) - tail(noise + 1, epsilon_threshold)
        above = [tail(noise - value, epsilon_query / 2) for value in lead]
        for stop in range(len(lead) + 1):
            outcome = (0,) * stop + ((1,) if stop < len(lead) else ())
            chance = (
                weight
                * math.prod(1 - p for p in above[:stop])
                * (above[stop] if stop < len(lead) else 1.0)
            )
            distribution[outcome] = distribution.get(outcome, 0.0) + chance
    return distribution


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon_threshold", "epsilon_query"), [(0.5, 1.0), (0.3, 1.5)])
def test_no_pair_of_neighbours_is_told_apart_by_more_than_the_cost_of_a_run(
    epsilon_threshold: float, epsilon_query: float
) -> None:
    # The table is exact up to tails below 1e-10.
    claim = epsilon_threshold + epsilon_query
    assert 0.5 * claim < _worst_ratio(epsilon_threshold, epsilon_query) <= claim * (1 + 1e-9)
    assert _worst_ratio(2 * epsilon_threshold, 2 * epsilon_query) > claim


def _worst_ratio(epsilon_threshold: float, epsilon_query: float) -> float:
    """Largest log-ratio of an outcome's probabilities over neighbouring sequences of three
    queries.
    """
    worst = 0.0
    for lead in itertools.product((-3, 0, 2), repeat=3):
        here = _run_distribution(lead, epsilon_threshold, epsilon_query)
        for move in itertools.product((-1, 0, 1), repeat=3):
            there = _run_distribution(
                tuple(a + b for a, b in zip(lead, move, strict=True)),
                epsilon_threshold,
                epsilon_query,
            )
            worst = max(worst, *(abs(math.log(here[outcome] / there[outcome])) for outcome in here))
    return worst


def test_released_outcomes_follow_that_distribution() -> None:
    distribution = _run_distribution((2, 0), 1.0, 2.0)
    screening = _screening(limit=1)
    runs = 4_000
    seen = [
        tuple(row[row >= 0].tolist())
        for row in (screening.release([152, 150], sampler=SecureSampler()) for _ in range(runs))
    ]
    for outcome, chance in distribution.items():
        # Five standard deviations: false-alarm rate below 1e-6 each.
        assert (
            abs(seen.count(outcome) - runs * chance)
            < 5 * math.sqrt(runs * chance * (1 - chance)) + 1
        )


def test_votes_are_counts() -> None:
    with pytest.raises(InvalidInput, match="largest_votes"):
        _screening().release(np.array([1.5]), sampler=SecureSampler())
