"""Costs in whole units."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.core.errors import InvalidParameter
from reticent.ledger.charges import (
    LARGEST,
    delta_cost,
    delta_grant,
    epsilon_cost,
    epsilon_grant,
    epsilon_value,
)

EPSILONS = st.floats(1e-9, 1e6, allow_nan=False)


@settings(deadline=None)
@given(EPSILONS, st.integers(1, 10_000))
def test_costs_round_up_by_less_than_a_unit(epsilon: float, answers: int) -> None:
    exact = answers * Fraction(repr(epsilon)) * 10**6
    assert exact <= epsilon_cost(epsilon, answers=answers) < exact + 1


@settings(deadline=None)
@given(st.floats(1e-6, 1e6))
def test_grants_round_down_by_less_than_a_unit(epsilon: float) -> None:
    exact = Fraction(repr(epsilon)) * 10**6
    assert exact - 1 < epsilon_grant(epsilon) <= exact
    assert epsilon_grant(epsilon) <= epsilon_cost(epsilon, answers=1)


@settings(deadline=None)
@given(EPSILONS, st.integers(1, 100))
def test_one_call_of_many_answers_costs_no_more_than_many_calls(
    epsilon: float, answers: int
) -> None:
    assert epsilon_cost(epsilon, answers=answers) <= answers * epsilon_cost(epsilon, answers=1)


def test_what_people_write_is_what_is_booked() -> None:
    assert epsilon_cost(0.1, answers=3) == 300_000
    assert epsilon_grant(0.3) == 300_000
    assert epsilon_cost(0.1 + 0.2, answers=1) == 300_001
    assert delta_cost(1e-5, answers=7) == 70_000_000
    assert delta_grant(1e-13) == 0
    assert epsilon_value(1_500_000) == 1.5


def test_out_of_range() -> None:
    with pytest.raises(InvalidParameter, match="more than a ledger can hold"):
        epsilon_cost(1e9, answers=LARGEST)
    with pytest.raises(InvalidParameter, match="smallest amount"):
        epsilon_grant(1e-7)
    for wrong in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(InvalidParameter):
            epsilon_cost(wrong, answers=1)
