"""Noise of a total, against the accountant and closed forms."""

from __future__ import annotations

import math

import pytest
from scipy.stats import norm

from reticent.accounting import GaussianAccountant, GaussianCost, PrivacyEvent
from reticent.core.guarantees import AddRemove, Guarantee, Replace
from reticent.planning.noise_levels import gaussian_multiplier, membership_cap, sum_noise
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


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.0), (1.0, 1e-2), (3.0, 0.1)])
def test_the_cap_is_reached_by_the_worst_pair(epsilon, delta):
    """The mechanism that meets (epsilon, delta) exactly: with delta the record is plain to see,
    otherwise randomised response.
    """
    plain = delta
    right = (1 - delta) / (1 + math.exp(-epsilon))
    assert membership_cap(epsilon, delta) == pytest.approx(plain + right, rel=1e-12)


def test_the_cap_bounds_the_best_test_on_gaussian_noise():
    epsilon, delta = 1.0, 1e-3
    multiplier = gaussian_multiplier(epsilon=epsilon, delta=delta)
    best = norm.cdf(0.5 / multiplier)  # likelihood ratio test of N(0, s^2) against N(1, s^2)
    assert 0.5 < best <= membership_cap(epsilon, delta)
