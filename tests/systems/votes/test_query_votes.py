"""Votes on queries: what is answered and counted, that ``predict`` is a release, and responses and
their totals.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from reticent.accounting import epsilon_per_answer
from reticent.core.errors import BudgetExceeded, InvalidParameter, UnknownName
from reticent.mechanisms import analytic_sigma
from reticent.release.fits import not_counted
from reticent.release.prepaid import Prepaid
from reticent.systems import Features
from reticent.systems.votes import sums
from reticent.systems.votes.linear_vote import LinearVoteClassifier

X, Y = load_digits(return_X_y=True)
ORDER = np.random.default_rng(0).permutation(len(X))
X, Y = X[ORDER], Y[ORDER]
PRIVATE, PUBLIC, TEST = slice(0, 1200), slice(1200, 1500), slice(1500, None)

SETTINGS: dict[str, Any] = {
    "epsilon": 20.0,
    "delta": 1e-5,
    "classes": range(10),
    "answers": 300,
    "features": Features(components=30),
    "clip_quantile": 0.6,
}


def fitted(**changes: Any) -> LinearVoteClassifier:
    system = LinearVoteClassifier(**{**SETTINGS, **changes})
    return system.fit(X[PRIVATE], Y[PRIVATE], public_X=X[PUBLIC])


def test_votes_are_cut_to_one_vote() -> None:
    """The longest are cut to one vote, and not all of them are."""
    linear = fitted()
    signed = linear.weights(linear._voters, linear.asked(linear._points(X[TEST][:3])))
    assert np.abs(signed).max() == 2.0**20
    assert 0.1 < (np.abs(signed) == 2.0**20).mean() < 0.9


def test_one_answer_is_a_response_to_the_margin() -> None:
    system = fitted(answers=1, delta=0.0, epsilon=2.0)
    assert system.guarantee.delta == 0.0
    assert "randomised response" in dict(system.card().details)["response"]
    many = fitted(answers=40, response="stability", epsilon=2.0)
    per_answer = epsilon_per_answer(epsilon=2.0, delta=1e-5, answers=40)
    assert many.response_.per_answer == per_answer  # type: ignore[attr-defined]
    with pytest.raises(InvalidParameter, match="delta=0"):
        fitted(delta=0.0, response="gaussian")
    with pytest.raises(UnknownName):
        fitted(response="loud")


@pytest.mark.parametrize("counting", ["add-remove", "replace"])
def test_noise_is_that_of_all_answers_together(counting: str) -> None:
    """The multiplier of T answers is sqrt(T) times that of one, and a replaced record moves twice
    as much.
    """
    system = fitted(answers=49, response="gaussian", counting=counting)
    alone = analytic_sigma(sensitivity=1.0, epsilon=system.epsilon, delta=system.delta)
    moved = sums.VOTE * np.sqrt(90.0) * (2 if counting == "replace" else 1)
    mechanism = system.response_.mechanism  # type: ignore[attr-defined]
    assert mechanism.sigmas[0] == pytest.approx(alone * 7 * moved, rel=1e-4)
    cost = system.response_.event.cost
    assert cost.rho == pytest.approx(0.5 / alone**2, rel=1e-4)  # type: ignore[attr-defined]


FEW = np.random.default_rng(0).normal(size=(40, 2))
ROWS = np.random.default_rng(1).normal(size=(60, 2))
LABELS = (ROWS[:, 0] > 0).astype(int)


def made(**changes: Any) -> LinearVoteClassifier:
    given: dict[str, Any] = {"epsilon": 50.0, "delta": 1e-5, "classes": (0, 1), "answers": 30}
    return LinearVoteClassifier(**{**given, **changes})


def test_predict_and_score_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    system = made().fit(ROWS, LABELS, public_X=FEW)

    def refused(*_: Any) -> None:
        raise AssertionError("the exact answer was asked for")

    for name in ("exact_predict", "vote_table"):
        monkeypatch.setattr(LinearVoteClassifier, name, refused)
    assert system.predict(ROWS[:4]).shape == (4,)
    assert system.remaining_ == 26
    assert 0.0 <= system.score(ROWS[:20], LABELS[:20]) <= 1.0
    assert system.remaining_ == 6
    with pytest.raises(BudgetExceeded):
        system.predict(ROWS[:7])


@pytest.mark.parametrize(("response", "delta"), [("stability", 0.0), ("gaussian", 1e-5)])
def test_predict_does_not_tell_the_label_of_the_only_record(response: str, delta: float) -> None:
    """Another label is one record less, then one more: at epsilon .1 each, its share moves by at
    most tanh(.1).

    4,000 first answers for each label, as of so many fits; five standard errors of the difference
    are .056, which chance exceeds once in 1.7 million. Exact answers differ by 1.
    """
    shares = []
    for label in (0, 1):
        with not_counted("as of many fits of which one is released"):
            system = made(epsilon=0.1, delta=delta, answers=1, response=response)
            system.fit(ROWS[:1], np.array([label]), public_X=FEW)
            assert system.exact_predict(ROWS[:1]).tolist() == [label]
            system._prepaid = Prepaid(system.response_.event, queries=4000)
            shares.append(float(np.mean(system.predict(np.repeat(ROWS[:1], 4000, axis=0)))))
    assert abs(shares[1] - shares[0]) <= math.tanh(0.1) + 2 * delta + 0.056
