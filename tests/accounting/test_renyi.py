from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from reticent.accounting import (
    Composed,
    Cost,
    GaussianCost,
    PoissonSampled,
    StatedCost,
    ZeroConcentratedCost,
)
from reticent.accounting.renyi import DEFAULT_ORDERS, rdp_curve


# dp-accounting takes seconds to import: only the process that needs it does so.
def test_unsampled_costs_are_those_of_dp_accounting() -> None:
    from dp_accounting import dp_event
    from dp_accounting.privacy_accountant import NeighboringRelation
    from dp_accounting.rdp.rdp_privacy_accountant import RdpAccountant

    one, other = NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_ONE
    same: list[tuple[Cost, Any, Any]] = [
        (GaussianCost(3.0), dp_event.GaussianDpEvent(3.0), one),
        (ZeroConcentratedCost(0.1, 0.3), dp_event.ZCDpEvent(0.1, 0.3), one),
        (StatedCost(math.log(3), 0.0), dp_event.RandomizedResponseDpEvent(0.5, 2), other),
    ]
    for cost, theirs, relation in same:
        expected = RdpAccountant(DEFAULT_ORDERS, relation).compose(theirs).rdp
        assert rdp_curve(cost, DEFAULT_ORDERS) == pytest.approx(expected, rel=1e-9), cost


@pytest.mark.parametrize(("rate", "sigma"), [(0.01, 1.0), (0.25, 85.0), (0.5, 10.0), (1e-3, 0.8)])
def test_sampled_gaussian_noise_is_at_most_that_of_dp_accounting(rate: float, sigma: float) -> None:
    """Which leaves the signs of its series out at orders that are not integers; at integers the
    two agree.
    """
    from dp_accounting import dp_event
    from dp_accounting.rdp.rdp_privacy_accountant import RdpAccountant

    theirs = RdpAccountant(DEFAULT_ORDERS).compose(
        dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(sigma))
    )
    expected, found = (
        np.asarray(theirs.rdp),
        rdp_curve(PoissonSampled(rate, GaussianCost(sigma)), DEFAULT_ORDERS),
    )
    whole = np.asarray(DEFAULT_ORDERS) == np.round(DEFAULT_ORDERS)
    # Its sums of logarithms lose up to eight digits of divergences this small.
    assert found[whole] == pytest.approx(expected[whole], rel=1e-7)
    assert np.all(found <= expected * (1 + 1e-7))


@pytest.mark.parametrize("order", [1.001, 1.5, 2.0, 40.0, 1024.0])
@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.5, 3.0, 900.0])
def test_pure_costs_against_many_digits(epsilon: float, order: float) -> None:
    """Tiny costs keep all their digits, large ones do not overflow; neither is below the exact
    divergence.
    """
    with mp.workdps(60):
        a, e = mp.mpf(order), mp.mpf(epsilon)
        answers = (mp.exp(a * e) + mp.exp((1 - a) * e)) / (1 + mp.exp(e))
        exact, found = mp.log(answers) / (a - 1), rdp_curve(StatedCost(epsilon, 0.0), (order,))[0]
        assert exact * (1 - mp.mpf("1e-13")) <= found <= exact * (1 + mp.mpf("1e-10"))


def test_parts_on_one_sample_add_up_before_they_are_sampled() -> None:
    """The general bound of two Gaussian steps and a pure one: above each alone, below them
    unsampled.
    """
    gaussian, pure = GaussianCost(4.0), StatedCost(0.2, 0.0)
    orders = (2.0, 3.5, 16.0)
    together = rdp_curve(PoissonSampled(0.1, Composed((gaussian, gaussian, pure))), orders)
    alone = rdp_curve(PoissonSampled(0.1, GaussianCost(4.0 / math.sqrt(2))), orders)
    unsampled = 2 * rdp_curve(gaussian, orders) + rdp_curve(pure, orders)
    assert np.all(together > alone)
    assert np.all(together < unsampled)


def test_very_little_gaussian_noise_is_bounded_by_chords() -> None:
    found = rdp_curve(PoissonSampled(0.1, GaussianCost(0.01)), (2.0, 2.5, 3.0))
    moments = found * (np.array([2.0, 2.5, 3.0]) - 1)
    assert moments[1] == pytest.approx((moments[0] + moments[2]) / 2)
