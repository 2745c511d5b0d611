"""``IndividualKNNClassifier``: what it answers, forgets, books and refuses."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from reticent.core import AddRemove, Guarantee, Scope
from reticent.core.errors import (
    InvalidInput,
    InvalidParameter,
)
from reticent.ledger import Ledger
from reticent.systems import Ball, Features, IndividualKNNClassifier

DIGITS, NAMES = load_digits(return_X_y=True)
RANDOM = np.random.default_rng(0)
X, Y = RANDOM.random((200, 4)), np.arange(200) % 2
KEYS = [f"person {number // 2}" for number in range(200)]
SCOPE = Scope(subject="records")
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


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger.create(tmp_path / "ledger.db", synchronous="NORMAL")
    from reticent.core.guarantees import Unit

    adjacency = AddRemove(1, Unit.PERSON, "ward 7")
    made.grant(SCOPE, Guarantee(3.5, 1e-4, adjacency))
    return made


def test_digits_are_right_and_without_end() -> None:
    classifier = IndividualKNNClassifier(
        epsilon=8.0, delta=1e-5, classes=range(10), votes=10.0, ball=Ball(share=0.05, power=2)
    ).fit(DIGITS[:1400], NAMES[:1400], public_X=DIGITS[1400:1600])
    release = classifier.release(DIGITS[1600:])
    assert (release.values == NAMES[1600:]).mean() > 0.8
    assert not release.withheld.any()
    assert release.receipt.guarantee == classifier.guarantee
    assert classifier.guarantee.epsilon <= 8.0
    assert (classifier.exact_predict(DIGITS[1600:]) == NAMES[1600:]).mean() > 0.9
    for _ in range(12):
        last = classifier.release(DIGITS[1600:])
    # Nobody near these queries has anything left, and answers are noise.
    assert (last.values == NAMES[1600:]).mean() < 0.5


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


def test_coming_back_does_not_renew_a_budget() -> None:
    classifier = IndividualKNNClassifier(
        epsilon=3.0,
        delta=1e-5,
        classes=[0, 1],
        votes=2.0,
        ball=Ball(radius=1.0),
        features=Features(range=(0.0, 1.0)),
    ).fit(np.zeros((3, 1)), [1, 1, 1], persons=["a", "b", "c"])
    classifier.release(np.zeros((5, 1)))
    spent = classifier.held_.filter.room(np.arange(3)).tolist()
    assert spent == [0, 0, 0]
    classifier.forget("a").insert(np.zeros((1, 1)), [1], persons=["a"])
    assert classifier.held_.filter.room(classifier.held_.numbers).tolist() == [0, 0, 0]


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


def test_what_cannot_be_is_refused_and_keeps_nothing() -> None:
    for changes, message in (
        ({"ball": None}, "radius"),
        ({"ball": Ball(radius=0.5, power=3)}, "power"),
        ({"looks": ()}, "looks"),
        ({"features": None}, "range"),
    ):
        classifier = IndividualKNNClassifier(**{**SETTINGS, **changes})
        with pytest.raises(InvalidParameter, match=message):
            classifier.fit(X, Y)
        assert not hasattr(classifier, "plan_")
    classifier = fitted()
    with pytest.raises(InvalidInput, match="labels from classes only"):
        classifier.insert(X[:1], [7], persons=["a"])
    with pytest.raises(InvalidInput, match="3 features"):
        classifier.insert(X[:1, :3], [1], persons=["a"])
    with pytest.raises(InvalidInput, match="shape"):
        IndividualKNNClassifier(**SETTINGS).fit(X, Y, public_X=X[:, :3])
