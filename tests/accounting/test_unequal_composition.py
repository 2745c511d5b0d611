from __future__ import annotations

import math

import mpmath
import pytest
from dp_accounting.pld import common, privacy_loss_distribution

from reticent.accounting import optimal_epsilon, optimal_epsilon_of
from tests.accounting.test_composition import delta_by_enumeration


def test_unequal_answers_lie_just_above_the_truth() -> None:
    parts = [(0.3, 0.0), (0.7, 0.001), (0.3, 0.0), (1.1, 0.0)]
    total = optimal_epsilon_of(parts, delta=0.01)
    assert delta_by_enumeration(parts, total) <= 0.01 + 1e-12
    assert delta_by_enumeration(parts, total - 1e-5) > 0.01


def test_unequal_answers_agree_with_the_closed_form_when_they_are_equal() -> None:
    closed = optimal_epsilon(epsilon=0.2, answers=50, delta=1e-6, answer_delta=0.0)
    assert optimal_epsilon_of([(0.2, 0.0)] * 50, delta=1e-6) == pytest.approx(closed, rel=1e-10)
    assert optimal_epsilon_of([], delta=1e-6) == 0.0


def _exact_of_two(first: tuple[float, int], second: tuple[float, int], total: float) -> mpmath.mpf:
    """Delta of two groups of pure answers: every pair of numbers of lies."""
    (e, m), (f, n) = first, second
    lie, other = 1 / (1 + mpmath.exp(mpmath.mpf(e))), 1 / (1 + mpmath.exp(mpmath.mpf(f)))
    ours = [mpmath.binomial(m, k) * lie**k * (1 - lie) ** (m - k) for k in range(m + 1)]
    theirs = [mpmath.binomial(n, k) * other**k * (1 - other) ** (n - k) for k in range(n + 1)]
    found = mpmath.mpf(0)
    for k, p in enumerate(ours):
        for j, q in enumerate(theirs):
            loss = (m - 2 * k) * mpmath.mpf(e) + (n - 2 * j) * mpmath.mpf(f)
            if loss > total:
                found += p * q * (1 - mpmath.exp(total - loss))
    return found


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((0.1, 60), (0.2, 20)),
        ((3.0, 120), (1.0, 150)),
        ((0.013, 200), (0.5, 7)),
        ((30.0, 5), (1e-3, 100)),
    ],
)
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.01])
def test_two_groups_against_every_pair_of_lies(
    first: tuple[float, int], second: tuple[float, int], delta: float
) -> None:
    """Not below the optimum, and a few millionths above it at most."""
    total = optimal_epsilon_of(
        [(first[0], 0.0)] * first[1] + [(second[0], 0.0)] * second[1], delta=delta
    )
    with mpmath.workdps(40):
        assert _exact_of_two(first, second, total) <= delta
        assert _exact_of_two(first, second, total * (1 - 3e-6)) > delta


def test_many_different_answers_against_a_fine_loss_distribution() -> None:
    """dp-accounting's distribution on a grid of 1e-5 is an upper bound as well."""
    parts = [(round(0.02 + 0.005 * k, 3), 0.0) for k in range(40)]
    total = privacy_loss_distribution.identity(value_discretization_interval=1e-5)
    for epsilon, own in parts:
        pair = common.DifferentialPrivacyParameters(epsilon, own)
        total = total.compose(
            privacy_loss_distribution.from_privacy_parameters(
                pair, value_discretization_interval=1e-5
            )
        )
    assert optimal_epsilon_of(parts, delta=1e-6) == pytest.approx(
        total.get_epsilon_for_delta(1e-6), rel=2e-4
    )


def test_edge_cases() -> None:
    assert optimal_epsilon_of([(0.5, 0.0)] * 3 + [(1.0, 0.0)], delta=0.0) == 2.5
    assert optimal_epsilon_of([(0.5, 1e-6), (1.0, 1e-6)], delta=2e-6) == pytest.approx(1.5)
    assert math.isinf(optimal_epsilon_of([(0.5, 1e-6), (1.0, 1e-6)], delta=1e-6))
    assert optimal_epsilon_of([(800.0, 0.0), (1.0, 0.0)], delta=1e-5) == pytest.approx(
        801.0, abs=1e-4
    )
    assert optimal_epsilon_of([(0.3, 0.0)], delta=0.9) == 0.0
