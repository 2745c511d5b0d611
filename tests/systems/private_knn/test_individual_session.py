"""The theorem's premises on tiny data: whatever is released, asked, forgotten and inserted, two
worlds that differ by one unit differ by that unit's own vote or not at all, and the squares of
these differences stay within the cap. And the exact delta of a small adaptive interaction.
"""

from __future__ import annotations

import itertools
import math
import threading

import numpy as np
import pytest

from reticent.accounting import IndividualFilter, IndividualGaussianBudget
from reticent.core import AddRemove
from reticent.neighbours import LEAST_WEIGHT, WEIGHT_STEPS, RadiusKernel
from reticent.noise import AuditSampler, SeededSampler
from reticent.systems.private_knn.held_records import HeldRecords
from reticent.systems.private_knn.individual_session import IndividualNoise, IndividualSession

KERNEL = RadiusKernel(squared_inner=1, squared_radius=12, power=1)
PLACES = (-1, 0, 3)


def _plan(**changes) -> IndividualNoise:
    settings = {
        "epsilon": 1.0,
        "delta": 1e-5,
        "classes": 2,
        "votes": 2.0,
        "looks": (1,),
        "lead": 1.0,
        "adjacency": AddRemove(1),
    }
    return IndividualNoise.of(**{**settings, **changes})


class Watched(IndividualSession):
    """Keeps the exact sum of every look, and releases what another world released."""

    def __init__(self, plan: IndividualNoise, script: list[np.ndarray] | None) -> None:
        super().__init__(plan)
        self.script, self.exact, self.released = script, [], []

    def _noisy(self, exact, drawn):
        place = len(self.exact)
        self.exact.append(exact)
        self.released.append(exact + drawn if self.script is None else self.script[place])
        return self.released[-1]


def _world(plan, others, x, seed, script) -> Watched:
    """Forty steps of an adversary who chooses each from everything that was released so far."""
    session = Watched(plan, script)
    session.filter = IndividualFilter(cap=plan.weight_cap)
    held = HeldRecords(session.filter, dimension=1, by_person=True)

    def take_in(key: str, place: int, label: int) -> None:
        held.insert([np.array([[place]], dtype=np.int16)], np.array([label]), [key])

    for number, (place, label) in enumerate(others):
        take_in(f"other {number}", place, label)
    if x is not None:
        take_in("x", *x)
    sampler = AuditSampler(seed)
    for step in range(40):
        history = b"".join(np.asarray(one).tobytes() for one in session.released)
        choice = np.random.default_rng([seed, step, *history[-64:]])
        act = choice.random()
        key = choice.choice(["x", "other 0"])
        place, label = int(choice.choice(PLACES)), int(choice.integers(plan.classes))
        if act < 0.15:
            held.forget(key)
        elif act < 0.3:
            if key != "x" or x is not None:
                take_in(key, place, label)
        else:
            session.sums(held, np.array([[place]], dtype=np.int16), [KERNEL], sampler=sampler)
    return session


def _largest_spending(plan, others, x, seed) -> int:
    """Squares of the differences of two worlds, in both directions, in units of the cap."""
    worst = 0
    for first, second in ((x, None), (None, x)):
        one = _world(plan, others, first, seed, None)
        two = _world(plan, others, second, seed, one.released)
        assert len(one.exact) == len(two.exact) > 5
        spent = 0
        for ours, theirs in zip(one.exact, two.exact, strict=True):
            apart = np.abs(ours - theirs)
            # The unit's own vote: the other labels each lose what its label gains in all.
            assert apart.sum() == 2 * apart.max()
            spent += int((apart.astype(object) ** 2).sum())
        worst = max(worst, spent)
    return worst


@pytest.mark.parametrize("classes", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_two_worlds_differ_by_no_more_than_the_cap(classes: int) -> None:
    """Names of labels play no part: the record has the last, others have that or another one."""
    plan, reached = _plan(classes=classes), 0
    ours, theirs = (
        itertools.product(PLACES, (classes - 1,)),
        list(itertools.product(PLACES, (0, classes - 1))),
    )
    for seed, (x, other) in enumerate(itertools.product(ours, theirs)):
        for others in ((), (other,), (other, other)):
            spent = _largest_spending(plan, others, x, seed)
            assert spent <= plan.budget.cap
            reached = max(reached, spent)
    assert reached > 0.9 * plan.budget.cap  # so that the cap is no idle bound


@pytest.mark.parametrize(("lead", "precision"), [(1e9, 4), (0.0, 1)], ids=["unclear", "clear"])
def test_looks_are_charged_by_their_precision(lead: float, precision: int) -> None:
    """A clear query gets one look, and is charged for one."""
    plan = _plan(looks=(1, 3), lead=lead, votes=1.0)
    held, session = _full(plan, records=5)
    session.sums(held, np.zeros((1, 1), dtype=np.int16), [KERNEL], sampler=SeededSampler(0))
    spent = plan.weight_cap - session.filter.room(np.arange(5))
    assert spent.tolist() == [precision * WEIGHT_STEPS**2] * 5


def _full(plan, *, records: int) -> tuple[HeldRecords, IndividualSession]:
    session = IndividualSession(plan)
    held = HeldRecords(session.filter, dimension=1, by_person=False)
    held.insert([np.zeros((records, 1), dtype=np.int16)], np.ones(records, dtype=np.int64), None)
    return held, session


def test_sums_are_the_records_votes_and_noise_of_the_stated_size() -> None:
    plan = _plan(votes=2.0**20, looks=(1, 3), lead=1e9)
    held, session = _full(plan, records=50)
    queries = np.zeros((400, 1), dtype=np.int16)
    found = session.sums(held, queries, [KERNEL] * 400, sampler=AuditSampler(5))
    exact = 4 * 50 * WEIGHT_STEPS
    error = (found - np.array([-exact, exact])) / (plan.budget.sigma * 2.0)
    assert abs(float(error.mean())) < 4 / math.sqrt(800)
    assert abs(float((error**2).mean()) - 1) < 4 * math.sqrt(2 / 800)


def test_noise_in_votes_is_the_one_that_the_plan_states() -> None:
    plan = _plan(classes=10, votes=50.0, looks=(1, 1, 2))
    mu = math.sqrt(50.0 * (1 - 1 / 10)) / plan.sigma_votes
    exact = IndividualGaussianBudget(
        sigma=1e9, cap=round((mu * 1e9) ** 2), least=10**15, coordinates=1
    )
    assert exact.epsilon(delta=1e-5) == pytest.approx(1.0, rel=1e-3)
    assert plan.guarantee.epsilon <= 1.0


def _exact_delta(shifts: list[int], sigma: float, epsilon: float) -> float:
    """Delta of a two-step interaction, summed over every pair of outcomes.

    The second step is asked only where the first one came out positive: the record pays for it
    there alone.
    """
    reach = 12 * math.ceil(sigma)
    values = np.arange(-reach, reach + max(shifts) + 1)

    def mass(shift: int) -> np.ndarray:
        chances = np.exp(-0.5 * ((values - shift) / sigma) ** 2)
        return chances / chances.sum()

    total = 0.0
    for first, p, q in zip(values, mass(shifts[0]), mass(0), strict=True):
        again = shifts[1] if first > 0 else 0
        total += float(np.maximum(p * mass(again) - math.exp(epsilon) * q * mass(0), 0).sum())
    return total


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_an_adaptive_interaction_stays_within_the_claim(epsilon: float) -> None:
    shift, sigma = 1000, 1100.0
    budget = IndividualGaussianBudget(sigma=sigma, cap=2 * shift**2, least=shift**2, coordinates=1)
    coarse = 10  # the same interaction on a grid ten times as coarse, which is summed at once
    exact = _exact_delta([shift // coarse] * 2, sigma / coarse, epsilon)
    once = IndividualGaussianBudget(sigma=sigma, cap=shift**2, least=shift**2, coordinates=1)
    assert once.delta(epsilon=epsilon) < exact <= budget.delta(epsilon=epsilon)


def test_threads_share_one_budget() -> None:
    plan = _plan(votes=40.0, lead=1e9)
    held, session = _full(plan, records=1)
    query = np.zeros((20, 1), dtype=np.int16)
    threads = [
        threading.Thread(
            target=session.sums,
            args=(held, query, [KERNEL] * 20),
            kwargs={"sampler": SeededSampler(seed)},
        )
        for seed in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert session.filter.room(np.array([0])).tolist() == [0]


def test_the_smallest_weight_is_what_the_budget_counts_with() -> None:
    plan = _plan(looks=(2, 6), votes=3.0)
    assert plan.budget.least == 2 * 2 * LEAST_WEIGHT**2
    assert plan.budget.precision == 6
    assert plan.weight_cap == 3 * 8 * WEIGHT_STEPS**2
