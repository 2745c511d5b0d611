"""Noise of a total, against the accountant and closed forms."""

from __future__ import annotations

import math

import pytest
from scipy.stats import norm

from reticent.accounting import GaussianAccountant, GaussianCost, PrivacyEvent
from reticent.core.guarantees import AddRemove, Guarantee, Replace
from reticent.planning.noise_levels import gaussian_multiplier, sum_noise
from tests.planning.fakes import task


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
def test_the_multiplier_is_the_least_that_meets_the_total(epsilon, delta):
    found = gaussian_multiplier(epsilon=epsilon, delta=delta)

    def spent(multiplier):
        # Balle and Wang 2018, Theorem 8, in plain floating point
        half = 0.5 / multiplier
        slope = epsilon * multiplier
        return norm.cdf(half - slope) - math.exp(epsilon) * norm.cdf(-half - slope)

    assert spent(found * 1.0001) <= delta < spent(found * 0.9999)


def test_many_sums_cost_what_the_accountant_says():
    wanted = task(guarantee=Guarantee(0.7, 1e-6, AddRemove()))
    each = sum_noise(wanted, releases=25, noise_scale=1.0)
    event = PrivacyEvent("sum", wanted.guarantee, GaussianCost(each))
    total = GaussianAccountant(AddRemove()).compose(event, 25).epsilon(delta=1e-6)
    assert total == pytest.approx(0.7, rel=1e-6)


def test_replaced_records_take_twice_the_noise():
    wanted = task(guarantee=Guarantee(1.0, 1e-5, Replace()))
    assert sum_noise(wanted, releases=1, noise_scale=0.5) == pytest.approx(
        sum_noise(task(), releases=1, noise_scale=1.0)
    )
