"""The other methods: the same guarantee, settings from public rows, levels where they belong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

from reticent.demos.certified.expected_accuracy import Answers
from reticent.demos.certified.problems import Problem, problem_of
from reticent.demos.certified.rungs import (
    ANSWERS,
    CELLS,
    CERTIFIED,
    CONSTANT,
    CONVEX,
    DELTA,
    DESCENT,
    MOMENTS,
    PUBLIC,
    RADIUS,
    VOTE,
    Rungs,
    rungs_of,
)
from reticent.systems.votes.linear_vote import LinearVoteClassifier

EPSILONS = (0.003, 1.0)


def small(private: int = 600) -> Problem:
    whole = problem_of("blobs-close")
    return replace(
        whole,
        X=whole.X[:private],
        y=whole.y[:private],
        queries=whole.queries[:500],
        truth=whole.truth[:500],
    )


def certain(problem: Problem, level: int = 50) -> Answers:
    levels = np.full(len(problem.truth), level)
    return Answers(problem.truth, levels, problem.truth[None], problem.truth, problem.classes)


@pytest.fixture(scope="module")
def rungs() -> Rungs:
    return rungs_of(small(), certain(small()), epsilons=EPSILONS, total=1.0)


def test_noise_drowns_at_a_small_epsilon_and_not_at_a_large_one(rungs: Rungs) -> None:
    for name in (VOTE, DESCENT):
        (low, drowned), (high, heard) = rungs.one[name]
        assert (low, high) == EPSILONS
        assert drowned < 0.8 < 0.88 < heard
    assert [answers for answers, _ in rungs.many[VOTE]] == list(ANSWERS)
    assert rungs.many[VOTE][-1][1] < 0.65 < 0.85 < rungs.many[VOTE][0][1]


def test_a_released_model_answers_any_number(rungs: Rungs) -> None:
    assert len({right for _, right in rungs.many[DESCENT]}) == 1
    assert rungs.many[DESCENT][0][1] == rungs.one[DESCENT][1][1]  # the same total, 1


def test_the_constant_is_that_of_scikit_learn(rungs: Rungs) -> None:
    problem = small()
    oracle = DummyClassifier(strategy="most_frequent")
    oracle.fit(problem.public_rows, problem.public_labels)
    assert rungs.constant == oracle.score(problem.queries, problem.truth)
    assert rungs.accuracies(1.0)[CONSTANT] == rungs.constant
    assert rungs.accuracies(1.0)[PUBLIC] == rungs.public > 0.88


def test_public_rows_alone_know_nothing_of_private_ones(rungs: Rungs) -> None:
    problem = small()
    turned = replace(problem, y=1 - problem.y)
    other = rungs_of(turned, certain(problem), epsilons=EPSILONS[1:], total=1.0)
    assert other.public == rungs.public
    assert dict(other.one[VOTE])[1.0] < 0.2  # which does learn from them
    assert dict(other.one[DESCENT])[1.0] < 0.2


def test_held_out_labels_decide_no_setting() -> None:
    """Turned truth turns every accuracy around 1/2, and no choice."""
    problem = small(300)
    turned = replace(problem, truth=1 - problem.truth)
    found, other = (
        rungs_of(one, certain(one), epsilons=(1.0,), total=1.0) for one in (problem, turned)
    )
    for name in (VOTE, DESCENT):
        assert found.one[name][0][1] == pytest.approx(1 - other.one[name][0][1])
    for name, points in found.others.items():
        for (_, right), (_, wrong) in zip(points, other.others[name], strict=True):
            assert right == pytest.approx(1 - wrong)


def test_further_methods_pay_for_all_answers_or_for_each(rungs: Rungs) -> None:
    assert set(rungs.others) == {CELLS, MOMENTS, RADIUS, CONVEX}
    for points in rungs.others.values():
        assert [answers for answers, _ in points] == list(ANSWERS)
        assert points[0][1] > 0.85
    for name in (CELLS, MOMENTS):
        assert len({right for _, right in rungs.others[name]}) == 1
    for name in (RADIUS, CONVEX):
        assert rungs.others[name][-1][1] < 0.6


def test_the_vote_has_the_guarantee_of_one_certified_answer() -> None:
    problem = small(100)
    vote = LinearVoteClassifier(epsilon=0.7, delta=0.0, answers=1, classes=(0, 1)).fit(
        problem.X, problem.y, public_X=problem.public_rows
    )
    guarantee = vote.release(problem.queries[:1]).receipt.guarantee
    assert (guarantee.epsilon, guarantee.delta) == (pytest.approx(0.7), 0.0)


def test_certified_answers_are_those_of_the_mechanism_that_the_number_asks_for() -> None:
    """Level 50 at a total of 1 is sure for one answer, and moved by noise for 100,000."""
    problem = small()
    found = rungs_of(problem, certain(problem), epsilons=(1.0,), total=1.0).many[CERTIFIED]
    assert found[0][1] == pytest.approx(1.0)
    assert 0.5 < found[-1][1] < 0.6
    assert [right for _, right in found] == sorted((right for _, right in found), reverse=True)
    assert DELTA == 1e-5
