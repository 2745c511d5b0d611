"""Votes on queries: what is answered, counted, booked and refused; responses and their totals."""

from __future__ import annotations

import pickle
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from reticent.accounting import epsilon_per_answer
from reticent.core import AddRemove, Guarantee, Scope, Unit
from reticent.core.errors import (
    BudgetExceeded,
    InvalidInput,
    InvalidParameter,
    UnknownName,
)
from reticent.ledger import Ledger
from reticent.mechanisms import analytic_sigma
from reticent.systems import Features
from reticent.systems.votes import sums
from reticent.systems.votes.linear_vote import LinearVoteClassifier
from reticent.systems.votes.query_votes import QueryVotes

X, Y = load_digits(return_X_y=True)
ORDER = np.random.default_rng(0).permutation(len(X))
X, Y = X[ORDER], Y[ORDER]
PRIVATE, PUBLIC, TEST = slice(0, 1200), slice(1200, 1500), slice(1500, None)
SCOPE = Scope(subject="ward 7")

SYSTEMS: dict[str, tuple[type[QueryVotes], dict[str, Any], float]] = {
    "linear": (
        LinearVoteClassifier,
        {"features": Features(components=30), "clip_quantile": 0.6},
        0.6,
    ),
}


def made(name: str = "linear", **changes: Any) -> QueryVotes:
    kind, settings, _ = SYSTEMS[name]
    given = {"epsilon": 20.0, "delta": 1e-5, "classes": range(10), "answers": 300, **settings}
    return kind(**{**given, **changes})


def fitted(name: str = "linear", **changes: Any) -> QueryVotes:
    return made(name, **changes).fit(X[PRIVATE], Y[PRIVATE], public_X=X[PUBLIC])


@pytest.mark.parametrize("response", ["gaussian", "stability"])
@pytest.mark.parametrize("name", SYSTEMS)
def test_answers_are_right_more_often_than_not(name: str, response: str) -> None:
    system = fitted(name, response=response)
    release = system.release(X[TEST])
    right = SYSTEMS[name][2] - (0.1 if response == "stability" else 0)
    assert (release.values == Y[TEST]).mean() > right
    assert release.receipt.guarantee == system.guarantee
    assert system.remaining_ == 300 - len(X[TEST])
    assert (system.exact_predict(X[TEST]) == Y[TEST]).mean() > SYSTEMS[name][2]


def test_votes_are_those_of_the_definition() -> None:
    """By loops over records, in the public space."""
    linear = fitted()
    signed = linear.weights(linear._voters, linear.asked(linear._points(X[TEST][:3])))
    assert np.abs(signed).max() == 2.0**20
    assert 0.1 < (np.abs(signed) == 2.0**20).mean() < 0.9


def test_all_answers_are_counted_together() -> None:
    system = fitted(answers=5)
    system.release(X[TEST][:3])
    with pytest.raises(BudgetExceeded):
        system.release(X[TEST][:3])
    system.release(X[TEST][:2])
    assert system.remaining_ == 0
    with pytest.raises(BudgetExceeded):
        system.release(X[TEST][:1])


def test_a_ledger_is_charged_once_for_all_answers(tmp_path: Path) -> None:
    adjacency = AddRemove(1, Unit.RECORD, "ward 7")
    with closing(Ledger.create(tmp_path / "ledger.db")) as ledger:
        ledger.grant(SCOPE, Guarantee(25.0, 1e-4, adjacency))
        system = fitted(data_set="ward 7", answers=5)
        first = system.release(X[TEST][:2], ledger=ledger, scope=SCOPE)
        spent = ledger.report().accounts[0].spent_epsilon
        assert first.receipt.booked
        assert spent > 0
        again = pickle.loads(pickle.dumps(system))
        again.release(X[TEST][:2], ledger=ledger, scope=SCOPE)
        with pytest.raises(BudgetExceeded):
            system.release(X[TEST][:2], ledger=ledger, scope=SCOPE)
        with pytest.raises(InvalidInput, match="the same ledger again"):
            system.release(X[TEST][:1])
        assert ledger.report().accounts[0].spent_epsilon == spent
        with pytest.raises(BudgetExceeded):
            fitted(data_set="ward 7").release(X[TEST], ledger=ledger, scope=SCOPE)
        with pytest.raises(InvalidInput, match="data_set"):
            fitted().release(X[TEST][:1], ledger=ledger, scope=SCOPE)


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


def test_simulations_repeat_and_scale() -> None:
    system = fitted()
    one, other = (system.simulate(X[TEST], seed=4) for _ in range(2))
    assert np.array_equal(one.values, other.values)
    assert one.receipt.seeded
    assert system.remaining_ == 300
    spread = [
        np.std(
            system.simulate_scores(X[TEST], seed=5, noise_scale=scale)
            - system.simulate_scores(X[TEST], seed=5, noise_scale=1e-6)
        )
        for scale in (1.0, 3.0)
    ]
    assert spread[1] / spread[0] == pytest.approx(3, rel=0.1)
    margin = fitted(response="stability", answers=300)
    right = [
        (margin.simulate(X[TEST], seed=5, noise_scale=scale).values == Y[TEST]).mean()
        for scale in (0.25, 1.0, 4.0)
    ]
    assert right[0] > right[1] > right[2]


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


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("linear", {"answers": 0}),
        ("linear", {"ridge": 0.0}),
        ("linear", {"clip_quantile": 1.5}),
    ],
)
def test_settings_out_of_range_are_refused(name: str, changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        fitted(name, **changes)


@pytest.mark.parametrize("name", SYSTEMS)
def test_grids_are_settings_that_fit(name: str) -> None:
    kind = SYSTEMS[name][0]
    grid = kind.settings_grid(n_private=300, n_public=200, features=64, classes=10, epsilon=1.0)
    for settings in grid:
        system = kind(epsilon=1.0, delta=1e-5, classes=range(10), answers=50, **settings)
        system.fit(X[:300], Y[:300], public_X=X[300:500])
        found = system.simulate(X[TEST], seed=0, noise_scale=0.02).values
        assert (found == Y[TEST]).mean() > 0.2
