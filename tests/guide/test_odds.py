"""What a guarantee leaves to an attacker, against games that are played out, formulas of others and
exhaustive search.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from guide import odds


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


def test_concentrated_agrees_with_what_the_census_bureau_states() -> None:
    # Abowd and others (2022) state rho with two digits, US Census Bureau (2021) epsilon.
    stated = {use.what: use.epsilon for use in odds.OTHERS if use.source == "census2021"}
    assert odds.concentrated(2.56, delta=1e-10) == pytest.approx(
        stated["2020 redistricting tables, persons"], rel=0.005
    )
    assert odds.concentrated(0.07, delta=1e-10) == pytest.approx(
        stated["2020 redistricting tables, housing units"], rel=0.05
    )
