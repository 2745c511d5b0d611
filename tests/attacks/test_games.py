"""Games: a perfect attacker on randomised response reaches every cap, none exceeds one, and faults
do.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from reticent.attacks.candidates import Answers, Candidates
from reticent.attacks.games import (
    Game,
    Reconstruction,
    Setting,
    error_floor,
    named,
    random_pairs,
    weighed_mean,
    which_of_many,
    which_of_two,
    which_value,
    which_value_cap,
)
from reticent.core.guarantees import Guarantee, Replace
from reticent.core.norms import Norm
from reticent.noise import SeededSampler

EPSILON = 1.0


def responder(size: int, *, epsilon: float = EPSILON) -> Candidates:
    """Randomised response on the candidate's own number: for any two, and the best there is."""
    share = math.exp(epsilon) / (math.exp(epsilon) + size - 1)
    table = np.full((size, size), (1 - share) / (size - 1))
    np.fill_diagonal(table, share)
    random = np.random.default_rng(1)

    def answer(which, sampler):
        lie = random.random(len(which)) >= share
        other = (which + random.integers(1, size, len(which))) % size
        return Answers(np.where(lie, other, which), np.zeros(len(which), dtype=bool))

    return Candidates(
        np.arange(size, dtype=float)[:, None],
        None,
        size,
        np.log(table),
        Norm.LINF,
        answer,
        lambda seen: np.log(table)[seen],
    )


def setting(trials: int = 20_000, *, delta: float = 0.0) -> Setting:
    return Setting(
        claim=Guarantee(EPSILON, delta, Replace(1)),
        trials=trials,
        confidence=0.9999,
        sampler=SeededSampler(0),
        random=np.random.default_rng(2),
    )


def close(game: Game) -> bool:
    """Whether the share of right names is the cap, up to five standard errors."""
    return abs(game.success - game.cap) < 5 * math.sqrt(0.25 / game.trials)


def test_which_of_two_reaches_its_cap_and_a_fault_exceeds_it() -> None:
    pair = np.array([[0, 1]])
    for found in which_of_two(responder(2), pair, setting(), name="pair"):
        assert found.cap == pytest.approx(1 / (1 + math.exp(-1)))
        assert close(found)
        assert not found.exceeded
    faulty = which_of_two(responder(2, epsilon=2 * EPSILON), pair, setting(), name="pair")
    assert all(game.exceeded for game in faulty)


def test_the_surest_answers_may_be_those_that_delta_gives_away() -> None:
    """Every eighth input or so is given away, all others come from randomised response: private at
    that delta, and whoever is sure is always right.
    """
    delta, pair = 0.12, np.array([[0, 1]])
    kept, random = responder(2), np.random.default_rng(3)

    def answer(which, sampler):
        seen = kept.answer(which, sampler).values
        return Answers(np.where(random.random(len(which)) < delta, 2 + which, seen), which < 0)

    shares = np.exp(np.concatenate([kept.density(np.arange(2)), np.zeros((2, 2))]))
    shares[2:] = np.eye(2)
    leaking = replace(kept, answer=answer, density=lambda seen: np.log(shares + 1e-300)[seen])
    all_answers, surest = which_of_two(leaking, pair, setting(delta=delta), name="pair")
    assert surest.right == surest.trials < 0.2 * all_answers.trials
    assert not surest.exceeded
    # Two limits are estimated, so each of them may fail half as often.
    assert 1 - surest.confidence == pytest.approx((1 - all_answers.confidence) / 2)
    told = which_of_two(leaking, pair, setting(delta=delta / 3), name="pair")
    assert [game.exceeded for game in told] == [True, True]


def test_which_of_many_reaches_its_cap_and_a_fault_exceeds_it() -> None:
    found = which_of_many(responder(6), 1, setting())
    assert found.cap == pytest.approx(1 / (1 + 5 * math.exp(-1)))
    assert close(found)
    assert not found.exceeded
    assert which_of_many(responder(6, epsilon=1.2), 1, setting()).exceeded
    more = which_of_many(responder(6), 4, setting())
    assert found.success < more.success < more.cap
    assert more.cap == pytest.approx(1 / (1 + 5 * math.exp(-4)))


def test_an_attribute_has_a_cap_of_its_own() -> None:
    two = which_value(responder(2), np.array([0, 1]), setting(), name="kind")
    assert close(two)
    codes = np.array([0, 0, 1, 1, 2, 2])
    found = which_value(responder(6), codes, setting(), name="kind")
    assert 1 / 3 < found.success < found.cap < 1.0
    # numbers that no candidate has change nothing
    assert which_value(responder(6), 3 * codes + 1, setting(), name="kind") == found
    faulty = which_value(responder(2, epsilon=2.0), np.array([0, 1]), setting(), name="kind")
    assert faulty.exceeded


def test_the_cap_of_an_attribute_is_no_less_than_what_anybody_reaches() -> None:
    """Far rows: values can be told; rows without a partner count in full."""
    epsilons = np.array([[0, 1, 9], [1, 0, 9], [9, 9, 0]], dtype=float)
    codes = np.array([0, 1, 1])
    near = 1 / (1 + math.exp(-1))
    assert which_value_cap(codes, epsilons, 0 * epsilons) == pytest.approx((2 * near + 1) / 3)
    alike = np.zeros((3, 3))
    assert which_value_cap(codes, alike, alike) >= 2 / 3  # always naming the more frequent value
    assert which_value_cap(np.zeros(3, dtype=int), epsilons, 0 * epsilons) == 1.0


def test_the_weighed_mean_errs_least_and_no_less_than_the_floor() -> None:
    targets = np.array([[0.0], [1.0]])
    share = 1 / (1 + math.exp(-1))
    found = weighed_mean(responder(2), targets, setting())
    assert found.error == pytest.approx(share * (1 - share), abs=5 * found.standard_error)
    assert found.floor == pytest.approx(share * (1 - share))
    assert found.blind == pytest.approx(0.25)
    assert not found.exceeded
    assert weighed_mean(responder(2, epsilon=3.0), targets, setting()).exceeded
    with_delta = error_floor(responder(2), targets, setting(delta=0.1))
    assert 0 < with_delta < found.floor


def test_targets_far_from_zero_are_told_apart_as_near_it() -> None:
    """Of one column alone, where every processor rounds the squares alike: to multiples of 4."""
    near = np.arange(6.0)[:, None]
    floor = error_floor(responder(6), near, setting())
    assert error_floor(responder(6), 2.0**27 + near, setting()) == floor > 0
    for place in range(6):
        found = np.array([[2.0**27 + place + 0.25]])
        assert named(found, responder(6), 2.0**27 + near).tolist() == [place]


def test_nearest_candidates_and_pairs() -> None:
    candidates = responder(5)
    targets = np.arange(5.0)[:, None] ** 2
    found = named(np.array([[3.7], [17.0], [-1.0]]), candidates, targets)
    assert found.tolist() == [2, 4, 0]
    pairs = random_pairs(candidates, 500, np.random.default_rng(0))
    assert (pairs[:, 0] != pairs[:, 1]).all()
    assert len(np.unique(pairs)) == 5


def test_limits_are_exact_binomial_ones() -> None:
    assert Game("", 10, 10, 0.5, 0.0, 0.95).lower == pytest.approx(0.05 ** (1 / 10))
    assert Game("", 10, 0, 0.5, 0.0, 0.95).lower == 0.0
    assert Reconstruction("", 0.1, 0.01, 0.2, 1.0).exceeded
    assert not Reconstruction("", 0.16, 0.01, 0.2, 1.0).exceeded
