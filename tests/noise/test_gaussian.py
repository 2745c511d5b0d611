"""Discrete Gaussian draws: exact probabilities, acceptance at its boundary, and what a fault
would do.
"""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from reticent.noise import gaussian
from reticent.noise.digits import EXPONENTIAL_ERROR, enclosed_coins, exponential
from reticent.noise.gaussian import discrete_gaussian
from tests.noise.words import gaussian_law, p_value, seeded

ALARM = 1e-6


@pytest.mark.parametrize("sigma", [0.1, 0.3, 1.0, 2.5, 40.0])
def test_probabilities_of_single_values(sigma: float) -> None:
    draws = discrete_gaussian(300_000, sigma, seeded(1))
    assert p_value(draws, gaussian_law(sigma)) > ALARM
    if sigma > 0.2:
        assert p_value(draws, gaussian_law(sigma * 0.97)) < ALARM
        assert p_value(draws, gaussian_law(sigma * 1.03)) < ALARM


@pytest.mark.parametrize("sigma", [1.3 * 2**20, 2.0**50])
def test_wide_draws_have_the_continuous_shape(sigma: float) -> None:
    draws = discrete_gaussian(100_000, sigma, seeded(2)) / sigma
    assert stats.kstest(draws, stats.norm.cdf).pvalue > ALARM
    for factor in (0.96, 1.04):
        assert stats.kstest(draws, stats.norm(scale=factor).cdf).pvalue < ALARM


@pytest.mark.parametrize("sigma", [0.37, 3.0, 1.3 * 2**20, 2.0**50 - 12345])
def test_acceptance_is_decided_by_the_exact_exponential(sigma: float) -> None:
    """Every coin whose 16 bits equal those of its probability is decided as mpmath decides it,
    64 bits further.
    """
    proposals = np.unique(np.round(np.linspace(0, 9, 300) * sigma).astype(np.int64))
    exact = Fraction(sigma)
    with mpmath.workprec(300):
        gaps = [(abs(int(v)) / exact - 1) ** 2 / 2 for v in proposals]
        chances = [mpmath.exp(-mpmath.mpf(gap.numerator) / gap.denominator) for gap in gaps]
        digits = [int(mpmath.floor(chance * 2**80)) for chance in chances]
    at = np.flatnonzero([digit < 2**80 for digit in digits])
    heads = np.array([digits[place] >> 64 for place in at], dtype=np.uint16)
    for shift, kept in ((-1, True), (1, False)):
        tails = [min(max(digits[place] % 2**64 + shift, 0), 2**64 - 1) for place in at]
        usable = np.array(
            [tail != digits[place] % 2**64 for place, tail in zip(at, tails, strict=True)]
        )
        given = heads[usable]
        padded = np.concatenate([given, np.zeros(-len(given) % 4, dtype=np.uint16)]).view(np.uint64)
        source = iter(
            [
                padded,
                *[
                    np.array([tail], dtype=np.uint64)
                    for tail, use in zip(tails, usable, strict=True)
                    if use
                ],
            ]
        )
        decided = gaussian._accepted(
            proposals[at][usable], sigma, exact, lambda count, source=source: next(source)
        )
        assert decided.all() if kept else not decided.any()
        assert next(source, None) is None


def test_a_certain_acceptance_is_certain() -> None:
    kept = gaussian._accepted(
        np.array([7, -7]),
        7.0,
        Fraction(7),
        lambda count: np.full(count, 2**64 - 1, dtype=np.uint64),
    )
    assert kept.all()


@pytest.mark.parametrize("sigma", [0.37, 1.3 * 2**20, 2.0**50 - 12345])
def test_the_computed_probability_is_within_its_bound(sigma: float) -> None:
    seen: list[np.ndarray] = []

    def spy(approximate, error, exact, words):
        seen.append(approximate)
        assert error == gaussian._ERROR
        return enclosed_coins(approximate, error, exact, words)

    proposals = np.round(np.linspace(0, 70, 2000) * sigma).astype(np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gaussian, "enclosed_coins", spy)
        gaussian._accepted(proposals, sigma, Fraction(sigma), seeded(4))
    with mpmath.workprec(200):
        gaps = [(abs(int(v)) / Fraction(sigma) - 1) ** 2 / 2 for v in proposals]
        worst = max(
            abs(mpmath.mpf(float(p)) - mpmath.exp(-mpmath.mpf(gap.numerator) / gap.denominator))
            for p, gap in zip(seen[0], gaps, strict=True)
        )
    assert worst < gaussian._ERROR - 2.0**-45


def test_the_exponential_is_within_its_bound() -> None:
    exponents = np.concatenate([np.linspace(0, 45, 4001), [1e-300, 1e300, np.inf]])
    computed = exponential(exponents)
    with mpmath.workprec(120):
        true = [mpmath.exp(-mpmath.mpf(x)) for x in exponents.tolist()]
        worst = max(abs(mpmath.mpf(p) - t) for p, t in zip(computed.tolist(), true, strict=True))
    assert worst < EXPONENTIAL_ERROR / 2
