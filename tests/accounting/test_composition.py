from __future__ import annotations

import itertools
import math
from typing import Any

import mpmath
import pytest

from reticent.accounting.calibration import epsilon_per_answer
from reticent.accounting.composition import (
    optimal_delta,
    optimal_epsilon,
    smallest_epsilon,
)
from reticent.core.errors import InvalidParameter


@pytest.mark.parametrize("answers", ["10", "100", "1000"])
def test_golden_values_of_pure_answers(golden: dict[str, Any], answers: str) -> None:
    pure = golden["pure"]
    expected = pure["answers"][answers]
    total = smallest_epsilon(
        epsilon=pure["epsilon"], answers=int(answers), delta=pure["delta"], answer_delta=0.0
    )
    assert total.winner == "optimal"
    assert total.epsilon == pytest.approx(expected["optimal"], rel=1e-9)
    assert total.candidates["basic"] == pytest.approx(expected["basic"], rel=1e-9)
    assert total.epsilon < expected["advanced"]


def delta_by_enumeration(parts: list[tuple[float, float]], total: float) -> float:
    """Every outcome of the worst mechanisms, one by one, in 40 digits: delta = sum over outcomes
    of max(0, P - e^total Q).
    """
    mpmath.mp.dps = 40
    options = []
    for epsilon, delta in parts:
        e, d = mpmath.mpf(epsilon), mpmath.mpf(delta)
        high, low = (1 - d) * mpmath.exp(e) / (1 + mpmath.exp(e)), (1 - d) / (1 + mpmath.exp(e))
        options.append([(d, mpmath.mpf(0)), (high, low), (low, high), (mpmath.mpf(0), d)])
    excess = mpmath.mpf(0)
    for outcome in itertools.product(*options):
        p, q = mpmath.fprod(x[0] for x in outcome), mpmath.fprod(x[1] for x in outcome)
        excess += max(mpmath.mpf(0), p - mpmath.exp(total) * q)
    return float(excess)


@pytest.mark.parametrize(
    ("epsilon", "delta", "answers"), [(0.1, 0.0, 5), (1.0, 0.01, 4), (3.0, 1e-6, 5), (0.5, 0.2, 1)]
)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.71, 1.0])
def test_optimal_delta_is_that_of_every_outcome_enumerated(
    epsilon: float, delta: float, answers: int, share: float
) -> None:
    total = share * epsilon * answers
    found = optimal_delta(epsilon=epsilon, answers=answers, total_epsilon=total, answer_delta=delta)
    assert found == pytest.approx(
        delta_by_enumeration([(epsilon, delta)] * answers, total), rel=1e-10, abs=1e-15
    )


@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.05])
def test_optimal_epsilon_inverts_optimal_delta_from_the_safe_side(delta: float) -> None:
    total = optimal_epsilon(epsilon=0.3, answers=40, delta=delta, answer_delta=1e-12)
    assert optimal_delta(epsilon=0.3, answers=40, total_epsilon=total, answer_delta=1e-12) <= delta
    assert (
        optimal_delta(epsilon=0.3, answers=40, total_epsilon=total * (1 - 1e-9), answer_delta=1e-12)
        > delta
    )


def test_answers_that_spend_more_delta_than_there_is_are_refused() -> None:
    with pytest.raises(InvalidParameter, match=r"10 answers of delta 0\.01 already spend 0\.1"):
        smallest_epsilon(epsilon=0.5, answers=10, delta=0.05, answer_delta=0.01)


def test_more_answers_than_a_table_holds_cost_their_sum() -> None:
    asked: dict[str, Any] = {"answers": 10**12, "delta": 1e-6}
    found = smallest_epsilon(epsilon=1e-9, answer_delta=0.0, **asked)
    assert found.epsilon == pytest.approx(1000.0)
    assert epsilon_per_answer(epsilon=1.0, **asked) == pytest.approx(1e-12)


def test_large_numbers_neither_overflow_nor_warn() -> None:
    assert optimal_epsilon(epsilon=800.0, answers=3, delta=1e-5, answer_delta=0.0) == pytest.approx(
        2400, rel=1e-6
    )
    assert optimal_epsilon(epsilon=0.01, answers=100_000, delta=1e-9, answer_delta=0.0) < 30


@pytest.mark.parametrize(
    ("epsilon", "answers"), [(1.0, 5000), (0.1, 20_000), (0.1, 1000), (2.0, 50)]
)
def test_without_delta_pure_answers_cost_their_sum(epsilon: float, answers: int) -> None:
    """At any smaller total the loss of answers * epsilon, which has a probability above 0, needs
    a delta above 0.
    """
    total = smallest_epsilon(epsilon=epsilon, answers=answers, delta=0.0, answer_delta=0.0)
    assert total.epsilon == pytest.approx(answers * epsilon, rel=1e-15)
    assert (
        optimal_epsilon(epsilon=epsilon, answers=answers, delta=1e-300, answer_delta=0.0)
        == total.epsilon
    )
    assert math.isinf(
        optimal_epsilon(epsilon=epsilon, answers=answers, delta=0.0, answer_delta=1e-9)
    )


def test_the_total_of_many_answers_is_not_below_the_exact_one() -> None:
    """The sum over all outcomes in 60 digits."""
    epsilon, answers, delta = 0.01, 60_000, 1e-9
    total = optimal_epsilon(epsilon=epsilon, answers=answers, delta=delta, answer_delta=0.0)
    with mpmath.workdps(60):
        step = mpmath.mpf(epsilon)
        lie = 1 / (1 + mpmath.exp(step))
        weight, exact = (1 - lie) ** answers, mpmath.mpf(0)
        for lies in range(answers + 1):
            loss = (answers - 2 * lies) * step
            if loss <= total:
                break
            exact += weight * (1 - mpmath.exp(total - loss))
            weight *= lie / (1 - lie) * (answers - lies) / (lies + 1)
        assert delta * (1 - 1e-8) < exact <= delta
