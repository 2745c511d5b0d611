"""``IndividualKNNClassifier``: what it answers and forgets, and its noise, from its answers alone:
how often one query, asked again and again, gets the label of the majority.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from scipy import stats

from reticent.neighbours import WEIGHT_STEPS
from reticent.systems import Ball, Features, IndividualKNNClassifier
from reticent.systems.private_knn.individual_session import IndividualNoise

RANDOM = np.random.default_rng(0)
X, Y = RANDOM.random((200, 4)), np.arange(200) % 2
KEYS = [f"person {number // 2}" for number in range(200)]
SETTINGS: dict[str, Any] = {
    "epsilon": 3.0,
    "delta": 1e-5,
    "classes": [0, 1],
    "votes": 5.0,
    "ball": Ball(radius=0.5),
    "features": Features(range=(0.0, 1.0)),
    "data_set": "ward 7",
}


def fitted(**changes: Any) -> IndividualKNNClassifier:
    return IndividualKNNClassifier(**{**SETTINGS, **changes}).fit(X, Y, persons=KEYS)


def test_answers_depend_on_who_is_left() -> None:
    labels = dict.fromkeys(("a", "b", "c", "d"), "yes")
    classifier = IndividualKNNClassifier(
        epsilon=400.0,
        delta=1e-2,
        classes=["no", "yes"],
        votes=9.0,
        ball=Ball(radius=1.0),
        features=Features(range=(0.0, 1.0)),
    ).fit(np.zeros((5, 1)), [*labels.values(), "no"], persons=[*labels, "e"])
    query = np.zeros((9, 1))
    assert set(classifier.simulate(query, seed=0).values) == {"yes"}
    for key in labels:
        classifier.forget(key)
    assert set(classifier.exact_predict(query)) == {"no"}
    classifier.insert(np.zeros((3, 1)), ["yes"] * 3, persons=["a", "b", "new"])
    assert set(classifier.exact_predict(query)) == {"yes"}


def test_records_come_and_go_between_the_answers_of_another_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    classifier = fitted(ball=Ball(radius=3.0))
    changes = [
        threading.Thread(target=classifier.forget, args=(f"person {number}",))
        for number in range(10)
    ]
    # One person, taken in twice at once, has one budget.
    changes += [
        threading.Thread(target=classifier.insert, args=(X[:1], Y[:1], ["new"])) for _ in range(2)
    ]
    near, seen = classifier.held_.near, []

    def while_others_change(*asked: Any) -> Any:
        for number, found in enumerate(near(*asked)):
            if number == 0:
                for change in changes:
                    change.start()
                changes[0].join(timeout=0.1)
            seen.append((len(found[0]), len(classifier.held_)))
            yield found

    with monkeypatch.context() as slow:
        slow.setattr(classifier.held_, "near", while_others_change)
        classifier.release(X[:100])
    for change in changes:
        change.join()
    assert seen == [(100, 200)] * 100
    assert len(classifier.held_) == 200 - 20 + 2
    assert len(classifier.held_.filter) == 101


ANSWERS = 30_000
ALARM = 1e-7
"""Chance that right noise fails one test; drawn afresh in every run. Noise that is 1.1 times too
small is 11 standard errors off."""


def share_of_the_majority(plan: IndividualNoise, ahead: int) -> float:
    """Chance that the class with ``ahead`` whole votes more has the larger noisy sum.

    Two sums of two classes are +-(votes' difference) and discrete Gaussians of the charged sigma,
    wider than 2^16 steps: their difference is the continuous law's to 10^-9.
    """
    assert plan.budget.sigma > 2**16
    lead = 2 * ahead * WEIGHT_STEPS
    return float(stats.norm.cdf(lead / (plan.budget.sigma * np.sqrt(2.0))))


def majority(ahead: int, *, votes: float) -> tuple[IndividualNoise, int]:
    """The plan, and how many of ``ANSWERS`` name the label of ``ahead`` records more."""
    records = np.zeros((10 + 10 + ahead, 1))
    labels = np.repeat([0, 1], [10 + ahead, 10])
    classifier = IndividualKNNClassifier(
        epsilon=8.0,
        delta=1e-5,
        classes=[0, 1],
        votes=votes,
        ball=Ball(radius=0.5, power=0),
        features=Features(range=(-1.0, 1.0)),
    ).fit(records, labels)
    answers = classifier.release(np.zeros((ANSWERS, 1))).values
    return classifier.plan_, int((np.asarray(answers) == 0).sum())


def test_one_query_gets_its_label_as_often_as_the_charged_noise_says() -> None:
    votes = float(ANSWERS)  # so that nobody retires, which would change the margin
    plan = IndividualNoise.of(
        epsilon=8.0,
        delta=1e-5,
        classes=2,
        votes=votes,
        looks=(1,),
        lead=1.0,
        adjacency=None,  # type: ignore[arg-type]
    )
    ahead = round(plan.budget.sigma / (np.sqrt(2.0) * WEIGHT_STEPS))
    found_plan, found = majority(ahead, votes=votes)
    assert found_plan.budget == plan.budget
    right = share_of_the_majority(plan, ahead)
    assert 0.6 < right < 0.95
    assert stats.binomtest(found, ANSWERS, right).pvalue > ALARM
    for factor in (1.1, 1 / 1.1):  # what a fault of a tenth would show
        wrong = stats.norm.cdf(factor * stats.norm.ppf(right))
        error = np.sqrt(right * (1 - right) / ANSWERS)
        assert abs(wrong - right) > 7 * error
