"""Exact laws against closed forms and against the accountants, and tests of stated noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from reticent.accounting.exact_gaussian import gaussian_delta
from reticent.audit import (
    ScaleTest,
    exponential_law,
    finite_law,
    gaussian_law,
    laplace_law,
    reachable_laplace,
    response_law,
    staircase_law,
)


def test_laws_against_closed_forms():
    for epsilon in (0.0, 0.5, 1.5):
        laplace = laplace_law(shift=1.0, scale=0.5)
        assert laplace.delta(epsilon) == pytest.approx(
            max(0.0, 1 - math.exp((epsilon - 2.0) / 2)), abs=1e-4
        )
        gaussian = gaussian_law(mu=1.3)
        wanted = gaussian_delta(noise_multiplier=1 / 1.3, epsilon=epsilon)
        assert gaussian.delta(epsilon) == pytest.approx(wanted, abs=1e-4)
    # Far out, where differences of numbers close to 1 would be magnified by e^18.9.
    far = gaussian_delta(noise_multiplier=1 / 3.3, epsilon=18.9)
    assert gaussian_law(mu=3.3).delta(18.9) == pytest.approx(far, rel=1e-3)
    assert response_law(epsilon=2.0, labels=5).epsilon(0.0) == pytest.approx(2.0)
    assert staircase_law(epsilon=1.0, gamma=0.4).epsilon(1e-12) == pytest.approx(1.0, abs=1e-6)
    scores = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0]])
    chances = np.exp(0.5 * scores)
    chances /= chances.sum(axis=1, keepdims=True)
    worst = np.abs(np.log(chances[0] / chances[1])).max()
    assert exponential_law(*scores, factor=0.5).epsilon(0.0) == pytest.approx(worst)


def test_composition_and_sampling_against_enumeration():
    """Three runs of a table of three answers, all 27 outcomes."""
    first, second = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    rows = [np.einsum("i,j,k->ijk", p, p, p).ravel() for p in (first, second)]
    whole, composed = finite_law(*rows), finite_law(first, second).composed(3)
    for epsilon in (0.2, 1.0, 2.0):
        assert composed.delta(epsilon) == pytest.approx(whole.delta(epsilon), abs=1e-3)
    mixed = finite_law(first, second).subsampled(0.25)
    odds = 1.0 + 0.25 * (math.exp(math.log(2.5)) - 1.0)
    assert mixed.epsilon(0.0) == pytest.approx(math.log(odds))
    twice = gaussian_law(mu=0.7).composed(4)
    wanted = gaussian_delta(noise_multiplier=1 / 1.4, epsilon=1.0)
    assert twice.delta(1.0) == pytest.approx(wanted, abs=1e-3)
    sure = finite_law([0.9, 0.1], [1.0, 0.0]).composed(2)
    assert sure.delta(5.0) == pytest.approx(1 - 0.9**2)


def test_a_sampled_gaussian_against_quadrature():
    rate, mu = 0.2, 1.5
    law = gaussian_law(mu=mu).subsampled(rate)

    def excess(x: float, epsilon: float, sign: float) -> float:
        mixed = rate * norm.pdf(x - mu) + (1 - rate) * norm.pdf(x)
        first, second = (mixed, norm.pdf(x)) if sign > 0 else (norm.pdf(x), mixed)
        return max(0.0, first - math.exp(epsilon) * second)

    for epsilon in (0.1, 0.5, 1.5):
        found = [
            quad(excess, -12, 14, (epsilon, sign), limit=400, points=[0.0, 1.0, 3.0])[0]
            for sign in (1.0, -1.0)
        ]
        assert law.delta(epsilon) == pytest.approx(max(found), abs=1e-4)


def test_two_staircases_against_their_density_on_a_lattice():
    epsilon, gamma = 0.8, 0.25
    places = np.arange(-60.0, 61.0, 0.25) + 0.125  # in the middle of cells where it is level
    laws = []
    for center in (0.0, 1.0):
        quarters = np.floor(4 * np.abs(places - center))  # the first of four is the high one
        density = np.exp(-epsilon * (quarters // 4 + (quarters % 4 > 0)))
        laws.append(density / density.sum())
    first, second = (np.outer(law, law) for law in laws)
    law = staircase_law(epsilon=epsilon, gamma=gamma).composed(2)
    for at in (0.2, 0.7, 1.2):
        wanted = np.maximum(first - math.exp(at) * second, 0).sum()
        assert law.delta(at) == pytest.approx(wanted, abs=3e-4)


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_half_the_stated_noise_is_refuted_by_200_draws_and_the_whole_seldom(law):
    """200 runs of each; 1,000 at the stated scale: more than 24 refuted at level .01 with a chance
    of 1e-4.
    """
    late, false = 0, 0
    for seed in range(200):
        random = np.random.default_rng([20, seed])
        draws = 7.0 + getattr(random, "normal" if law == "gaussian" else law)(size=200, scale=1.0)
        small = ScaleTest(law, scale=2.0, alpha=0.01)
        late += not small.update(draws)
        false += ScaleTest(law, scale=1.0, alpha=0.01).update(draws)
    assert late <= 2
    assert false <= 9


def test_reachable_sums_of_a_textbook_sampler():
    random = np.random.default_rng(21)
    for center, scale in ((0.0, 1.0), (1.0, 0.5), (17.0, 10.0)):
        drawn = center + random.laplace(scale=scale, size=2000)
        assert reachable_laplace(drawn, exact=center, scale=scale).all()
    drawn = random.laplace(scale=1.0, size=2000)
    assert reachable_laplace(drawn, exact=1.0, scale=1.0).mean() < 0.9
