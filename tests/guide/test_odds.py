"""What a guarantee leaves to an attacker, against games that are played out, formulas of others and
exhaustive search.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from guide import odds
from reticent.accounting.telling_apart import which_of_two_cap


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("prior", [0.01, 0.5])
def test_randomised_response_reaches_the_posterior(epsilon: float, prior: float) -> None:
    """Bayes' rule for one randomised bit, played 400,000 times."""
    rng = np.random.default_rng(7)
    truth = rng.random(400_000) < prior
    told = truth ^ (rng.random(truth.size) < 1.0 / (1.0 + math.exp(epsilon)))
    found = truth[told].mean()
    error = math.sqrt(found * (1.0 - found) / told.sum())
    assert abs(found - odds.posterior(prior, epsilon=epsilon)) < 4.0 * error


def test_one_of_many_values_is_guessed_as_often_as_randomised_response_keeps_it() -> None:
    for choices in (2, 10, 100):
        kept = math.exp(1.5) / (math.exp(1.5) + choices - 1)
        assert odds.right_guess(epsilon=1.5, choices=choices) == pytest.approx(kept, rel=1e-12)


def test_no_test_finds_more_than_the_trade_off() -> None:
    """Every likelihood-ratio test on the mechanism that is worst for (epsilon, delta)."""
    epsilon, delta = 1.2, 0.01
    keep = (1.0 - delta) * math.exp(epsilon) / (1.0 + math.exp(epsilon))
    there = np.array([delta, keep, 1.0 - delta - keep, 0.0])
    absent = there[::-1]
    for share in (0.0, 0.001, 0.05, 0.3, 0.9):
        found, left = 0.0, share
        for chance, alarm in sorted(
            zip(there, absent, strict=True), key=lambda pair: -pair[0] / max(pair[1], 1e-300)
        ):
            taken = 1.0 if alarm <= left else left / alarm
            found, left = found + taken * chance, left - taken * alarm
        cap = odds.detected(share, epsilon=epsilon, delta=delta)
        assert found == pytest.approx(cap, abs=1e-12)


def test_gaussian_noise_is_guessed_as_two_normal_curves_are() -> None:
    for epsilon in (0.5, 1.0, 8.0):
        share = odds.gaussian_right_guess(epsilon=epsilon, delta=1e-5)
        apart = 2.0 * stats.norm.ppf(share)
        # The privacy profile of two normal distributions (Balle and Wang 2018, theorem 8).
        delta = stats.norm.cdf(apart / 2 - epsilon / apart) - math.exp(epsilon) * stats.norm.cdf(
            -apart / 2 - epsilon / apart
        )
        assert delta == pytest.approx(1e-5, rel=1e-3)
        assert share < which_of_two_cap(epsilon, 1e-5)


def test_a_group_is_promised_no_less_than_so_many_steps() -> None:
    for row in odds.group_table().splitlines()[2:]:
        records, epsilon, stated = (float(cell) for cell in row.strip("| ").split("|"))
        total = 0.0
        for _ in range(int(records)):
            total = math.e * total + 1e-6
        assert epsilon == records
        assert total * (1 - 1e-9) <= stated <= 1.1 * total


def test_concentrated_agrees_with_what_the_census_bureau_states() -> None:
    # Abowd and others (2022) state rho with two digits, US Census Bureau (2021) epsilon.
    stated = {use.what: use.epsilon for use in odds.OTHERS if use.source == "census2021"}
    assert odds.concentrated(2.56, delta=1e-10) == pytest.approx(
        stated["2020 redistricting tables, persons"], rel=0.005
    )
    assert odds.concentrated(0.07, delta=1e-10) == pytest.approx(
        stated["2020 redistricting tables, housing units"], rel=0.05
    )


def test_concentrated_is_no_better_than_gaussian_noise_is_and_no_worse_than_the_simple_bound() -> (
    None
):
    for rho in (0.05, 0.5, 2.0):
        exact = odds.gaussian_right_guess(epsilon=1.0, delta=1e-5)
        assert 0.5 < exact < 1.0
        simple = rho + 2.0 * math.sqrt(rho * math.log(1e6))
        found = odds.concentrated(rho, delta=1e-6)
        noise = 1.0 / math.sqrt(2.0 * rho)
        delta = stats.norm.cdf(0.5 / noise - found * noise) - math.exp(found) * stats.norm.cdf(
            -0.5 / noise - found * noise
        )
        assert delta <= 1e-6
        assert found < simple


def test_percent_never_rounds_to_certainty() -> None:
    for share in (0.99, 0.9933, 0.99951, 0.99996, 0.999999999):
        assert odds.percent(share) != "100 %"
    assert odds.percent(1.0) == "100 %"
