"""``IndividualKNNClassifier``: what it answers, forgets, books and refuses."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from reticent.systems import Ball, Features, IndividualKNNClassifier

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
