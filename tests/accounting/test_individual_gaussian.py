"""The cost of a record's cap against exact sums over discrete noise, and against other bounds."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from reticent.accounting import (
    GaussianAccountant,
    GaussianCost,
    IndividualGaussianBudget,
    PrivacyEvent,
    RdpAccountant,
    ZeroConcentratedCost,
    calibrate_individual_gaussian,
)
from reticent.core import AddRemove, Guarantee
from reticent.core.errors import CalibrationFailed, InvalidParameter

BUDGET = IndividualGaussianBudget(sigma=4e6, cap=10**12, least=10**8, coordinates=2)


def _event(cost) -> PrivacyEvent:
    return PrivacyEvent("noise", Guarantee(1.0, 1e-5, AddRemove()), cost)


@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
def test_it_is_the_gaussian_of_the_whole_cap_and_a_little_more(delta: float) -> None:
    exact = GaussianAccountant(AddRemove()).compose(_event(GaussianCost(4.0))).epsilon(delta=delta)
    found = BUDGET.epsilon(delta=delta)
    assert exact <= found < exact * 1.001
    assert BUDGET.delta(epsilon=found) <= delta


def test_it_is_below_zcdp_which_holds_for_the_discrete_noise_itself() -> None:
    zcdp = RdpAccountant(AddRemove()).compose(_event(ZeroConcentratedCost(BUDGET.rho)))
    assert BUDGET.rho == pytest.approx(1 / 32, rel=1e-9)
    assert BUDGET.epsilon(delta=1e-5) < zcdp.epsilon(delta=1e-5)


def test_the_distance_counts_for_every_answer_at_its_own_noise() -> None:
    """Fifty answers of one coordinate are one answer of fifty; and twice the noise at a precision
    of 4 is the same noise.
    """
    coarse = IndividualGaussianBudget(sigma=4096.0, cap=1024**2, least=1024**2, coordinates=50)
    many = replace(coarse, least=1024**2 // 50, coordinates=1)
    assert many.most_answers == 50
    precise = replace(coarse, sigma=8192.0, cap=4 * 1024**2, least=4 * 1024**2, precision=4)
    alone = replace(coarse, coordinates=1)
    for one in (many, precise):
        assert one.epsilon(delta=1e-5) == pytest.approx(coarse.epsilon(delta=1e-5), rel=1e-12)
        assert one.epsilon(delta=1e-5) > alone.epsilon(delta=1e-5) * (1 + 1e-6)


def _discrete_delta(shift: int, sigma: float, epsilon: float) -> float:
    """Delta of one answer with discrete noise, summed term by term."""
    reach = 40 * math.ceil(sigma)
    values = np.arange(-reach, reach + 1)
    mass = np.exp(-0.5 * (values / sigma) ** 2)
    mass /= mass.sum()
    moved = np.zeros_like(mass)
    moved[shift:] = mass[:-shift]
    return float(np.maximum(moved - math.exp(epsilon) * mass, 0).sum())


@pytest.mark.parametrize("shift", [300, 1100, 3000])
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
def test_the_claim_covers_discrete_noise_exactly(shift: int, epsilon: float) -> None:
    budget = IndividualGaussianBudget(sigma=1100.0, cap=shift**2, least=shift**2, coordinates=1)
    exact = _discrete_delta(shift, 1100.0, epsilon)
    assert exact <= budget.delta(epsilon=epsilon) <= exact * 1.05 + 1e-9


def test_calibration_is_tight_and_keeps_the_total() -> None:
    found = calibrate_individual_gaussian(
        epsilon=1.0, delta=1e-5, cap=10**12, least=10**8, coordinates=2
    )
    assert found.delta(epsilon=1.0) <= 1e-5
    assert replace(found, sigma=found.sigma * (1 - 1e-6)).delta(epsilon=1.0) > 1e-5
    assert found.multiplier == pytest.approx(3.7306, rel=1e-3)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="cap=3"):
        replace(BUDGET, cap=3)
    with pytest.raises(InvalidParameter, match="use finer steps"):
        replace(BUDGET, sigma=1000.0)
    with pytest.raises(CalibrationFailed, match="no noise up to"):
        calibrate_individual_gaussian(epsilon=1e-9, delta=1e-12, cap=2**62, least=1, coordinates=1)
    with pytest.raises(InvalidParameter, match="delta=1e-60"):
        BUDGET.epsilon(delta=1e-60)
