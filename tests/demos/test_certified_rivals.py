"""The other methods: the same guarantee, settings from public rows, levels where they belong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

from reticent.demos.certified import (
    ANSWERS,
    CERTIFIED,
    CONSTANT,
    CONVEX,
    DELTA,
    DESCENT,
    PUBLIC,
    VOTE,
    Answers,
    Problem,
    Rivals,
    problem_of,
    rivals_of,
)

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
def rivals() -> Rivals:
    return rivals_of(small(), certain(small()), epsilons=EPSILONS)


def test_noise_drowns_at_a_small_epsilon_and_not_at_a_large_one(rivals: Rivals) -> None:
    for name in (VOTE, DESCENT):
        drowned, heard = (rivals.one[name][epsilon] for epsilon in EPSILONS)
        assert drowned < 0.8 < 0.88 < heard
    many = rivals.many[VOTE]
    assert list(many) == list(ANSWERS)
    assert many[ANSWERS[-1]] < 0.65 < 0.85 < many[1]


def test_a_released_model_answers_any_number(rivals: Rivals) -> None:
    for name in (DESCENT, "moments", "cells"):
        assert len(set(rivals.many[name].values())) == 1
    assert rivals.many[DESCENT][1] == rivals.one[DESCENT][1.0]  # the same total, 1
    assert rivals.many[CONVEX][ANSWERS[-1]] < 0.6 < 0.85 < rivals.many[CONVEX][1]


def test_levels_use_public_rows_alone(rivals: Rivals) -> None:
    problem = small()
    oracle = DummyClassifier(strategy="most_frequent")
    oracle.fit(problem.public_rows, problem.public_labels)
    assert rivals.levels[CONSTANT] == oracle.score(problem.queries, problem.truth)
    assert rivals.levels[PUBLIC] > 0.88
    turned = replace(problem, y=1 - problem.y)
    other = rivals_of(turned, certain(problem), epsilons=EPSILONS[1:])
    assert other.levels == rivals.levels
    assert other.one[VOTE][1.0] < 0.2  # which does learn from the private rows
    assert other.one[DESCENT][1.0] < 0.2


def test_held_out_labels_decide_no_setting() -> None:
    """Turned truth turns every accuracy around 1/2, and no choice."""
    problem = small(300)
    turned = replace(problem, truth=1 - problem.truth)
    found, other = (rivals_of(one, certain(one), epsilons=(1.0,)) for one in (problem, turned))
    for name in (VOTE, DESCENT):
        assert found.one[name][1.0] == pytest.approx(1 - other.one[name][1.0])
    for name in set(found.many) - {CERTIFIED}:  # whose labels are the truth here
        for asked, right in found.many[name].items():
            assert right == pytest.approx(1 - other.many[name][asked])


def test_certified_answers_are_those_of_the_mechanism_that_the_number_asks_for() -> None:
    """Level 50 at a total of 1 is sure for one answer, and moved by noise for 100,000."""
    problem = small()
    found = list(rivals_of(problem, certain(problem), epsilons=(1.0,)).many[CERTIFIED].values())
    assert found[0] == pytest.approx(1.0)
    assert 0.5 < found[-1] < 0.6
    assert found == sorted(found, reverse=True)
    assert DELTA == 1e-5
