"""Sampled Gaussian noise, composed up to 10^6 times, beside an inversion of its transform."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

pytest.importorskip("dp_accounting")

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
    x = np.linspace(-12 * sigma, 12 * sigma + 1, 6001)
    base = np.exp(-0.5 * (x / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi)) * (x[1] - x[0])
    ratio = rate * np.expm1((x - 0.5) / sigma**2)
    loss, mixed = np.log1p(ratio), base * (1 + ratio)
    return max(
        brentq(lambda e: _inverted_delta(e, weights, losses, times) / DELTA - 1, 1e-3, 60.0)
        for weights, losses in ((mixed, loss), (base, -loss))
    )


def _inverted_delta(epsilon: float, weights: np.ndarray, losses: np.ndarray, times: int) -> float:
    def log_moment(z: np.ndarray) -> np.ndarray:
        return times * np.log1p(np.expm1(np.multiply.outer(z, losses)) @ weights)

    line = np.geomspace(0.05, 2000.0, 300)
    at = line[np.argmin(log_moment(line) - epsilon * line - np.log(line * (line + 1)))]
    spread = math.sqrt(times * float(weights @ losses**2))
    z = at + 1j * np.linspace(0.0, 9.0 / spread, 1500)
    terms = np.exp(log_moment(z) - epsilon * z) / (z * (z + 1))
    return float(np.trapezoid(terms.real, z.imag) / math.pi)


@pytest.mark.parametrize(
    ("sigma", "rate", "times"),
    [
        pytest.param(*setting, marks=() if place in FEW else pytest.mark.soak)
        for place, setting in enumerate(SETTINGS)
    ],
)
def test_totals_are_within_two_percent_and_never_below(
    sigma: float, rate: float, times: int
) -> None:
    cost = PoissonSampled(rate, GaussianCost(sigma))
    event = PrivacyEvent("gaussian", Guarantee(50.0, 1e-5, AddRemove()), cost)
    found = PldAccountant(AddRemove()).compose(event, times).epsilon(delta=DELTA)
    exact = inverted_epsilon(sigma, rate, times)
    print(sigma, rate, times, exact, found / exact)
    assert exact * (1 - 1e-5) <= found <= 1.02 * exact
    assert found <= RdpAccountant(AddRemove()).compose(event, times).epsilon(delta=DELTA)
