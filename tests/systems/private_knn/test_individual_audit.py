"""Individual budgets under audit: one record, asked about until it retires and then again.

A run is one record, alone in its place, and a whole interaction: the noisy sums of several queries
at its place, scored by their log-likelihood ratio. Thousands of places share one session, far
enough apart that no query sees two of them. False-alarm rate 1e-3, seeded.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import pytest

from reticent.accounting import IndividualFilter
from reticent.audit import SequentialTest, refute_recorded
from reticent.core import AddRemove
from reticent.neighbours import WEIGHT_STEPS, RadiusKernel
from reticent.noise import AuditSampler
from reticent.systems.private_knn.held_records import HeldRecords
from reticent.systems.private_knn.individual_session import IndividualNoise, IndividualSession

DELTA, ALPHA = 0.1, 1e-3
KERNEL = RadiusKernel(squared_inner=0, squared_radius=1, power=0)
QUERIES = 4
AT_ONCE = 4000
PLAN = IndividualNoise.of(
    epsilon=1.0,
    delta=DELTA,
    classes=2,
    votes=1.0,
    looks=(1,),
    lead=0.0,
    adjacency=AddRemove(1),
)


class OnceMore(IndividualFilter):
    """Asks what was spent before an answer, and not what is spent with it."""

    def admit(self, records, costs):
        inside = self._spent[records] <= self.cap
        self._spent[records[inside]] += costs[inside]
        return inside


class Forgetful(HeldRecords):
    """Who comes back starts anew."""

    def insert(self, points, labels, keys):
        self._known.clear()
        super().insert(points, labels, keys)


@lru_cache(maxsize=8)
def _sums(
    runs: int, there: bool, filter_type=IndividualFilter, held_type=HeldRecords, back: bool = False
) -> np.ndarray:
    """Noisy sums, shape (runs, QUERIES, 2). Where no record is there, all tests share them."""
    parts = []
    for first in range(0, runs, AT_ONCE):
        size = min(AT_ONCE, runs - first)
        session = IndividualSession(PLAN)
        session.filter = filter_type(cap=PLAN.weight_cap)
        held = held_type(session.filter, dimension=2, by_person=True)
        number = np.arange(size)
        places = np.stack([number % 64, number // 64], axis=1).astype(np.float32)
        sampler = AuditSampler(
            [there, back, filter_type is OnceMore, held_type is Forgetful, first]
        )
        names = [f"record {one}" for one in number]
        asked = []
        for query in range(QUERIES):
            if there and query and back:
                for name in names:
                    held.forget(name)
            if there and (query == 0 or back):
                held.insert(places, np.zeros(size, dtype=np.int64), names)
            asked.append(session.sums(held, places, [KERNEL] * size, sampler=sampler))
        parts.append(np.stack(asked, axis=1))
    return np.concatenate(parts)


def _audit(runs: int, *, counted: int, **faults) -> SequentialTest:
    """The bound from the first ``counted`` queries, whose sums together are the best score where
    the record takes part in all of them: a record of label 0 moves a sum by (1, -1) whole votes.
    """
    scores = []
    for sums in (_sums(runs, True, **faults), _sums(runs, False)):
        moved = (sums[:, :, 0] - sums[:, :, 1]) / (2 * WEIGHT_STEPS)
        scores.append(moved[:, :counted].sum(axis=1))
    return refute_recorded(
        *scores, epsilon=PLAN.guarantee.epsilon, delta=DELTA, alpha=ALPHA, seed=0
    )


RUNS = [10_000, pytest.param(1_000_000, marks=pytest.mark.soak)]


@pytest.mark.slow
@pytest.mark.parametrize("runs", RUNS)
def test_the_claim_is_not_refuted_and_not_idle(runs: int) -> None:
    found = _audit(runs, counted=1)
    assert not found.refuted
    assert found.excluded(delta=DELTA) > 0.6 * PLAN.guarantee.epsilon


@pytest.mark.slow
def test_coming_back_buys_nothing() -> None:
    assert not _audit(4_000, counted=QUERIES, back=True).refuted


@pytest.mark.slow
@pytest.mark.parametrize("runs", RUNS)
def test_a_filter_that_lets_a_record_in_once_too_often_is_caught(runs: int) -> None:
    assert _audit(runs, counted=2, filter_type=OnceMore).refuted


@pytest.mark.slow
def test_spending_that_does_not_outlive_forgetting_is_caught() -> None:
    found = _audit(4_000, counted=QUERIES, held_type=Forgetful, back=True)
    assert found.refuted


def test_the_record_takes_part_once_and_then_no_more() -> None:
    """Expected values of the sums, to four standard errors."""
    runs = 10_000
    mean = _sums(runs, True).mean(axis=0) / WEIGHT_STEPS
    noise = 4 * PLAN.budget.sigma / WEIGHT_STEPS / math.sqrt(runs)
    expected = np.zeros((QUERIES, 2))
    expected[0] = 1, -1
    assert np.abs(mean - expected).max() < noise
