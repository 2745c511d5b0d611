from __future__ import annotations

import math

import pytest

from reticent.accounting import (
    Composed,
    GaussianCost,
    PoissonSampled,
    RdpAccountant,
    StatedCost,
    ZeroConcentratedCost,
)
from reticent.accounting.costs import elementary_costs
from reticent.core import AddRemove
from tests.events import make_event


def test_an_event_without_a_cost_is_its_guarantee() -> None:
    assert elementary_costs(make_event(epsilon=0.3, delta=1e-7)) == [StatedCost(0.3, 1e-7)]


def test_nested_costs_are_taken_apart() -> None:
    zcdp = ZeroConcentratedCost(0.1)
    nested = Composed([GaussianCost(2.0), Composed([zcdp, zcdp]), StatedCost(0.1, 0.0)])
    assert elementary_costs(make_event(event=nested)) == [
        GaussianCost(2.0),
        zcdp,
        zcdp,
        StatedCost(0.1, 0.0),
    ]


def test_a_sample_of_everybody_is_no_sample() -> None:
    parts = Composed([GaussianCost(2.0), StatedCost(0.3, 0.0)])
    assert elementary_costs(make_event(event=PoissonSampled(1.0, parts))) == elementary_costs(
        make_event(event=parts)
    )


def test_gaussian_steps_on_one_sample_are_one() -> None:
    steps = PoissonSampled(0.2, Composed([*[GaussianCost(6.0)] * 3, GaussianCost(2.0)]))
    (cost,) = elementary_costs(make_event(event=steps))
    assert isinstance(cost, PoissonSampled)
    assert isinstance(cost.of, GaussianCost)
    assert cost.of.noise_multiplier == pytest.approx(1 / math.sqrt(3 / 36 + 1 / 4))


@pytest.mark.parametrize(
    ("epsilon", "delta", "rate"),
    [(1.0, 0.0, 0.1), (3.0, 1e-5, 0.5), (1e-6, 0.0, 0.01), (800.0, 0.0, 0.1)],
)
def test_a_sampled_statement_is_the_smaller_statement(
    epsilon: float, delta: float, rate: float
) -> None:
    (cost,) = elementary_costs(make_event(event=PoissonSampled(rate, StatedCost(epsilon, delta))))
    assert isinstance(cost, StatedCost)
    assert cost.epsilon <= epsilon
    assert cost.delta == pytest.approx(rate * delta, rel=1e-13)
    if epsilon < 100:
        assert cost.epsilon == pytest.approx(math.log(1 + rate * math.expm1(epsilon)), rel=1e-9)


def test_sampled_mixtures_are_counted_by_the_general_bound() -> None:
    mixture = Composed([ZeroConcentratedCost(0.02), StatedCost(0.125, 0.0)])
    sampled, whole = make_event(event=PoissonSampled(0.05, mixture)), make_event(event=mixture)
    totals = [
        RdpAccountant(AddRemove()).compose(event, 50).epsilon(delta=1e-6)
        for event in (sampled, whole)
    ]
    assert totals[0] < 0.2 * totals[1]
