"""Sampled Gaussian noise, composed up to 10^6 times, beside an inversion of its transform."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar

from reticent.accounting import (
    GaussianCost,
    PldAccountant,
    PoissonSampled,
    PrivacyEvent,
    RdpAccountant,
)
from reticent.core import AddRemove, Guarantee

DELTA = 1e-5

SETTINGS = [
    (1.0, 0.01, 10**3),
    (1.0, 0.01, 10**4),
    (0.8, 0.005, 10**4),
    (2.0, 0.02, 10**4),
    (1.0, 0.001, 10**5),
    (4.0, 0.01, 10**5),
    (8.0, 0.01, 10**5),
    (1.0, 0.0001, 10**6),
    (1.0, 0.001, 10**6),
    (2.0, 0.001, 10**6),
    (8.0, 0.001, 10**6),
    (20.0, 0.001, 10**6),
    (100.0, 0.01, 10**6),
    (300.0, 0.1, 10**6),
]
"""Noise multiplier, sampling rate and compositions."""

FEW = {4, 9, 11}
"""Those that every run tries."""


def inverted_epsilon(sigma: float, rate: float, times: int) -> float:
    """Epsilon of the worse direction, exact to about 1e-6.

    With M(z) the moment E exp(zL) of one loss, delta is the integral of M(z)^n exp(-epsilon z) /
    (z (z + 1)) over a vertical line, divided by 2 pi i.
    """
    x = np.linspace(-9 * sigma, 9 * sigma + 1, 2001)
    base = np.exp(-0.5 * (x / sigma) ** 2)
    base /= base.sum()
    ratio = rate * np.expm1((x - 0.5) / sigma**2)
    loss, mixed = np.log1p(ratio), base * (1 + ratio)
    return max(
        _inverted(weights / weights.sum(), losses, times)
        for weights, losses in ((mixed, loss), (base, -loss))
    )


def _inverted(weights: np.ndarray, losses: np.ndarray, times: int) -> float:
    def log_moment(z: np.ndarray) -> np.ndarray:
        return times * np.log1p(np.expm1(np.multiply.outer(z, losses)) @ weights)

    def bound(log_at: float) -> float:
        """Epsilon by the bound that the line through exp(``log_at``) gives."""
        at = math.exp(log_at)
        return (float(log_moment(np.array([at]))[0]) - math.log(DELTA * at * (1 + at))) / at

    # the line that bounds epsilon best has the least cancellation on it
    found = minimize_scalar(bound, bounds=(math.log(0.1), math.log(300.0)), method="bounded")
    at = math.exp(found.x)
    tilted = weights * np.exp(at * losses)
    tilted /= tilted.sum()
    spread = math.sqrt(times * float(tilted @ (losses - tilted @ losses) ** 2))
    z = at + 1j * np.linspace(0.0, 9.0 / spread, 400)
    logs = log_moment(z)

    def excess(epsilon: float) -> float:
        terms = np.exp(logs - epsilon * z) / (z * (z + 1))
        return float(np.trapezoid(terms.real, z.imag) / math.pi) / DELTA - 1

    return float(brentq(excess, 0.5 * found.fun, 1.5 * found.fun))


@pytest.mark.parametrize(
    ("sigma", "rate", "times"),
    [
        pytest.param(*setting, marks=() if place in FEW else pytest.mark.soak)
        for place, setting in enumerate(SETTINGS)
    ],
)
def test_totals_are_close_to_the_exact_ones_and_never_below(
    sigma: float, rate: float, times: int
) -> None:
    cost = PoissonSampled(rate, GaussianCost(sigma))
    event = PrivacyEvent("gaussian", Guarantee(50.0, 1e-5, AddRemove()), cost)
    found = PldAccountant(AddRemove()).compose(event, times).epsilon(delta=DELTA)
    exact = inverted_epsilon(sigma, rate, times)
    assert exact * (1 - 1e-6) <= found <= 1.002 * exact
    assert found <= RdpAccountant(AddRemove()).compose(event, times).epsilon(delta=DELTA)
