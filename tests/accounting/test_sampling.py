from __future__ import annotations

import math
from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest

from reticent.accounting.discrete_gaussian import sampled_gaussian_rdp
from reticent.accounting.sampling import (
    between_integers,
    exp_excess,
    general_sampled_rdp,
    sampled_gaussian_rdp_between,
)

Density = Callable[[mp.mpf], mp.mpf]


def _exact(
    base: Density, moved: Density, rate: float, order: float, ends: list[float], *, up: bool = True
) -> mp.mpf:
    """Rényi divergence of the mixture from the base, or of the base from the mixture, by
    quadrature in 30 digits.
    """
    q, a = mp.mpf(rate), mp.mpf(order)

    def integrand(x: mp.mpf) -> mp.mpf:
        without, mixed = base(x), (1 - q) * base(x) + q * moved(x)
        return mixed**a * without ** (1 - a) if up else without**a * mixed ** (1 - a)

    return mp.log(mp.quad(integrand, ends)) / (a - 1)


def _gaussian(sigma: float, center: float) -> Density:
    return lambda x: (
        mp.exp(-((x - center) ** 2) / (2 * mp.mpf(sigma) ** 2))
        / (mp.mpf(sigma) * mp.sqrt(2 * mp.pi))
    )


@pytest.mark.parametrize(
    ("rate", "sigma", "order"),
    [
        (0.01, 1.0, 7.8),
        (0.5, 10.0, 9.4),
        (0.9, 0.8, 1.3),
        (1e-4, 60.0, 3.7),
        (0.2, 0.3, 2.5),
        (0.05, 4.0, 1.003),
        (0.3, 2.0, 12.5),
    ],
)
def test_sampled_gaussian_noise_between_integers(rate: float, sigma: float, order: float) -> None:
    """Never below the exact divergence, and 1e-9 of it above at most; the other direction is
    smaller.
    """
    found = sampled_gaussian_rdp_between(
        np.array([order]), noise_multiplier=sigma, sampling_probability=rate
    )[0]
    with mp.workdps(30):
        ends = [sigma * k for k in range(-14, 15 + math.ceil(order / sigma))]
        exact = _exact(_gaussian(sigma, 0), _gaussian(sigma, 1), rate, order, ends)
        assert exact <= found <= exact * (1 + mp.mpf("1e-9"))
        assert (
            _exact(_gaussian(sigma, 0), _gaussian(sigma, 1), rate, order, ends, up=False) <= exact
        )


@pytest.mark.parametrize(("rate", "sigma"), [(0.01, 0.06), (0.3, 1.0), (0.05, 50.0), (0.99, 3.0)])
def test_quadrature_meets_the_closed_form_at_integers(rate: float, sigma: float) -> None:
    orders = np.array([2.0, 3.0, 17.0, 64.0])
    closed = sampled_gaussian_rdp(orders, noise_multiplier=sigma, sampling_probability=rate)
    assert sampled_gaussian_rdp_between(
        orders, noise_multiplier=sigma, sampling_probability=rate
    ) == pytest.approx(closed, rel=3e-10)


@pytest.mark.parametrize(
    ("rate", "sigma", "order"),
    [(0.01, 1.0, 8), (1e-3, 100.0, 1024), (0.3, 0.5, 300), (0.25, 85.0, 16384)],
)
def test_the_closed_form_at_integers_is_not_below_the_exact_sum(
    rate: float, sigma: float, order: int
) -> None:
    found = sampled_gaussian_rdp([order], noise_multiplier=sigma, sampling_probability=rate)[0]
    with mp.workdps(60):
        q, s = mp.mpf(rate), mp.mpf(sigma)
        weight, total = (1 - q) ** order, mp.mpf(0)
        for j in range(order + 1):
            total += weight * mp.exp(j * (j - 1) / (2 * s**2))
            weight *= mp.mpf(order - j) / (j + 1) * q / (1 - q)
        exact = mp.log(total) / (order - 1)
        assert exact <= found <= exact * (1 + mp.mpf("1e-8"))


@pytest.mark.parametrize(("low", "high"), [(0.05, 0.3), (0.4, 0.7), (0.001, 0.9)])
def test_the_general_bound_covers_an_asymmetric_pair_in_both_directions(
    low: float, high: float
) -> None:
    """A biased coin against another, with its own exact divergence, at orders on and between
    integers.
    """
    p, q, rate = np.array([high, 1 - high]), np.array([low, 1 - low]), 0.2

    def largest(first: np.ndarray, second: np.ndarray, orders: np.ndarray) -> np.ndarray:
        both = [
            np.log((a ** orders[:, None] * b ** (1 - orders[:, None])).sum(axis=1))
            for a, b in ((first, second), (second, first))
        ]
        return np.maximum(*both) / (orders - 1)

    orders = np.array([1.5, 2.0, 2.7, 5.0, 16.0, 63.5])
    bound = general_sampled_rdp(
        orders, lambda whole: largest(p, q, whole), sampling_probability=rate
    )
    for base, other in ((p, q), (q, p)):
        real = largest((1 - rate) * base + rate * other, base, orders)
        assert np.all(real <= bound)
        # At order 2 nothing is given away but the larger of the two directions.
    exact = max(
        largest((1 - rate) * b + rate * o, b, np.array([2.0]))[0] for b, o in ((p, q), (q, p))
    )
    assert bound[1] <= math.log1p(rate**2 * math.expm1(largest(p, q, np.array([2.0]))[0])) * (
        1 + 1e-12
    )
    assert bound[1] >= exact


def test_chords_are_above_convex_moments() -> None:
    orders = np.array([1.1, 1.9, 2.0, 6.3, 7.0])
    found = between_integers(orders, lambda whole: whole / 4)
    assert np.all(found >= orders / 4)
    assert found[[2, 4]] == pytest.approx(orders[[2, 4]] / 4, rel=1e-15)


def test_the_excess_of_the_exponential_keeps_its_digits() -> None:
    for x in (-3.0, -0.11, -0.09, -1e-9, 1e-300, 1e-12, 0.05, 0.1, 0.2, 30.0):
        with mp.workdps(60):
            exact = mp.exp(mp.mpf(x)) - 1 - mp.mpf(x)
        assert float(exp_excess(np.array([x]))[0]) == pytest.approx(float(exact), rel=2e-13)


@pytest.mark.parametrize("order", [2, 3, 7, 40])
@pytest.mark.parametrize("rate", [0.01, 0.3])
def test_the_general_bound_is_the_published_sum(order: int, rate: float) -> None:
    """Zhu and Wang (2019), theorem 6, in 40 digits: terms from the third on count three times."""

    def own(orders: np.ndarray) -> np.ndarray:
        return np.log1p(0.3 * orders)  # rises slowly enough for any mechanism's divergence

    found = general_sampled_rdp(np.array([float(order)]), own, sampling_probability=rate)[0]
    with mp.workdps(40):
        g, a = mp.mpf(rate), order
        moments = [mp.exp((j - 1) * mp.log(1 + mp.mpf(0.3) * j)) for j in range(2, a + 1)]
        total = (1 - g) ** (a - 1) * (a * g - g + 1)
        for j, moment in enumerate(moments, 2):
            weight = mp.binomial(a, j) * g**j * (1 - g) ** (a - j)
            total += weight * moment * (1 if j == 2 else 3)
        exact = mp.log(total) / (a - 1)
        assert found == pytest.approx(float(exact), rel=1e-9)
