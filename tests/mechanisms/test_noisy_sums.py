"""Noisy sums: the total against independent formulas and enumeration, what is refused, audits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from papers.claims.cases import noisy_sums_case
from reticent.core import AddRemove, Replace
from reticent.core.errors import BudgetExceeded, InvalidInput, InvalidParameter
from reticent.mechanisms import NoisySums, SumBlock, SumSession
from reticent.noise import AuditSampler, SecureSampler, SeededSampler

STEP = 2.0**20


def made(**changes: Any) -> NoisySums:
    settings: dict[str, Any] = {
        "blocks": (SumBlock(1, STEP),),
        "sums": 1,
        "epsilon": 1.0,
        "delta": 1e-5,
        "adjacency": AddRemove(1),
    }
    return NoisySums(**{**settings, **changes})


def needed(epsilon: float, delta: float) -> float:
    """The multiplier of continuous noise, from Balle and Wang's formula by scipy alone."""

    def excess(multiplier: float) -> float:
        half, slope = 0.5 / multiplier, epsilon * multiplier
        return float(norm.cdf(half - slope) - math.exp(epsilon) * norm.cdf(-half - slope) - delta)

    return float(brentq(excess, 1e-2, 1e4, xtol=1e-12))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-5), (1.0, 1e-5), (8.0, 1e-6), (2.0, 0.1)])
@pytest.mark.parametrize("sums", [1, 40])
def test_noise_is_that_of_the_exact_composition(epsilon: float, delta: float, sums: int) -> None:
    mechanism = made(epsilon=epsilon, delta=delta, sums=sums)
    expected = needed(epsilon, delta) * math.sqrt(sums)
    assert expected <= mechanism.multipliers[0] < expected * (1 + 1e-5)


def test_discreteness_is_paid_for_where_coordinates_are_many_and_the_grid_is_coarse() -> None:
    mechanism = made(blocks=(SumBlock(1000, 2.0**11),), sums=4)
    rough = needed(1.0, 1e-5) * 2.0
    eta = 4 * 1000 * 1300 / (8 * (rough * 2.0**11) ** 2)
    assert eta > 2e-3
    expected = needed(1.0 - 2 * eta, 1e-5 * math.exp(-eta)) * 2.0
    assert mechanism.multipliers[0] == pytest.approx(expected, rel=1e-6)


def test_blocks_share_the_precision() -> None:
    mechanism = made(blocks=(SumBlock(3, STEP, 0.75), SumBlock(1, 5 * STEP, 0.25)), sums=7)
    spent = [7 / multiplier**2 for multiplier in mechanism.multipliers]
    assert sum(spent) == pytest.approx(needed(1.0, 1e-5) ** -2, rel=1e-5)
    assert spent[0] == pytest.approx(3 * spent[1])
    assert mechanism.sigmas[1] == pytest.approx(5 * STEP * mechanism.multipliers[1])


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_the_discrete_noise_itself_keeps_the_total(epsilon: float) -> None:
    """Delta of the discrete distribution at the claimed epsilon, summed over all its values."""
    delta = 1e-3
    mechanism = made(blocks=(SumBlock(1, 2.0**14),), epsilon=epsilon, delta=delta)
    sigma, shift = mechanism.sigmas[0], math.floor(mechanism.distances[0])
    values = np.arange(-int(12 * sigma) - shift, int(12 * sigma) + 2 * shift, dtype=np.float64)
    here = np.exp(-0.5 * (values / sigma) ** 2)
    there = np.exp(-0.5 * ((values - shift) / sigma) ** 2)
    here, there = here / here.sum(), there / there.sum()
    found = float(np.maximum(there - math.exp(epsilon) * here, 0.0).sum())
    assert 0.99 * delta < found <= delta


def test_replacing_a_record_takes_twice_the_noise() -> None:
    assert made(adjacency=Replace(1)).sigmas[0] == pytest.approx(2 * made().sigmas[0])
    assert made(adjacency=AddRemove(3)).sigmas[0] == pytest.approx(3 * made().sigmas[0])


def test_the_charge_is_the_noise_in_zcdp() -> None:
    mechanism = made(sums=5)
    rho = 5 * 0.5 * (mechanism.distances[0] / mechanism.sigmas[0]) ** 2
    cost: Any = mechanism.event.cost
    assert rho <= cost.rho < rho * (1 + 1e-9)
    assert mechanism.event.guarantee == mechanism.guarantee
    assert (mechanism.guarantee.epsilon, mechanism.guarantee.delta) == (1.0, 1e-5)


def test_sums_are_released_with_noise_of_the_stated_size() -> None:
    mechanism = made(blocks=(SumBlock(50_000, STEP),))
    totals = np.arange(50_000).reshape(100, 500) * 2.0**20
    (noisy,) = mechanism.noisy((totals,), sampler=SecureSampler())
    away = (noisy - totals) / mechanism.sigmas[0]
    assert noisy.shape == totals.shape
    # Variance of 50,000 draws: relative deviation .0063; a false alarm once in 10^8 runs.
    assert abs(away.std() - 1) < 6 * 0.0063 / 2
    assert abs(away.mean()) < 6 / math.sqrt(50_000)


def test_a_session_releases_as_many_sums_as_were_paid_for() -> None:
    session = SumSession(made(sums=2), sampler=SecureSampler())
    for _ in range(2):
        session.release(([0],))
    with pytest.raises(BudgetExceeded, match="all 2 of this mechanism"):
        session.release(([0],))


def test_other_noise_is_for_experiments_only() -> None:
    mechanism = made()
    with pytest.raises(InvalidInput, match="expected 1 in a release"):
        mechanism.noisy(([0],), sampler=SecureSampler(), noise_scale=0.5)
    assert SumSession(mechanism, sampler=SeededSampler(3), noise_scale=0.5).sigmas == (
        pytest.approx(0.5 * mechanism.sigmas[0]),
    )
    with pytest.raises(InvalidInput, match="expected 1 in a release"):
        mechanism.noisy_rows([[0]], sampler=SecureSampler(), noise_scale=0.5)
    one, half = (
        mechanism.noisy_rows(np.zeros((4000, 1)), sampler=SeededSampler(3), noise_scale=scale).std()
        for scale in (1.0, 0.5)
    )
    assert half / one == pytest.approx(0.5, rel=0.1)


@pytest.mark.parametrize(
    "changes",
    [
        {"sums": 0},
        {"epsilon": 0.0},
        {"epsilon": 1e-6},
        {"epsilon": 1000.0},
        {"delta": 0.0},
        {"delta": 1e-60},
        {"adjacency": None},
        {"blocks": ()},
        {"blocks": (SumBlock(1, STEP, 0.5),)},
        {"blocks": (SumBlock(1, 2.0),)},  # a grid of two steps
        {"blocks": (SumBlock(1, 2.0**55),)},
    ],
)
def test_settings_out_of_range_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        made(**changes)


@pytest.mark.parametrize("totals", [([0.5],), ([0, 0],), ([2.0**62],), ([math.nan],), ([0], [0])])
def test_totals_that_are_no_sums_are_refused(totals: Any) -> None:
    with pytest.raises(InvalidInput, match="totals"):
        made().noisy(totals, sampler=SecureSampler())


AUDITED = {
    "one sum": made(delta=0.05),
    "twenty sums": made(delta=0.05, sums=20),
    "two blocks": made(delta=0.05, blocks=(SumBlock(2, STEP, 0.9), SumBlock(1, STEP, 0.1)), sums=3),
    "replace": made(delta=0.05, adjacency=Replace(1)),
}


@pytest.mark.parametrize(
    "runs", [10_000, pytest.param(1_000_000, marks=pytest.mark.soak)], ids=["quick", "soak"]
)
@pytest.mark.parametrize("name", AUDITED)
def test_no_claim_is_refuted(name: str, runs: int) -> None:
    case = noisy_sums_case(AUDITED[name], epsilon=1.0, delta=0.05)
    found = case.bet(draws=runs, alpha=1e-3, sampler=AuditSampler(7))
    assert not found.refuted
    assert found.excluded(delta=0.05) > 0.6  # the pair is the worst one: little is left
