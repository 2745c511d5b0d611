"""Conversions of Renyi curves, with a slack and without: against dp-accounting and counts."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from reticent.accounting import ApproximateRdp, epsilon_of_rdp
from reticent.accounting.renyi import DEFAULT_ORDERS
from reticent.core.errors import InvalidParameter


def _curves() -> list[np.ndarray]:
    orders, rng = np.asarray(DEFAULT_ORDERS), np.random.default_rng(3)
    return [10.0 ** rng.uniform(-12, 2) * orders ** rng.uniform(0.2, 1.5) for _ in range(40)]


@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.01, 0.3])
def test_epsilon_is_that_of_dp_accounting_and_never_below_the_exact_one(delta: float) -> None:
    from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon

    for curve in _curves():
        found, order = epsilon_of_rdp(DEFAULT_ORDERS, curve, delta)
        expected, _ = compute_epsilon(DEFAULT_ORDERS, curve, delta)
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)
        if found > 0:
            with mp.workdps(40):
                a, r, d = mp.mpf(order), mp.mpf(curve[DEFAULT_ORDERS.index(order)]), mp.mpf(delta)
                assert mp.mpf(found) >= r + mp.log1p(-1 / a) - mp.log(d * a) / (a - 1)


def test_edge_cases() -> None:
    assert epsilon_of_rdp([2.0, 4.0], [0.0, 0.0], 0.0) == (0.0, 2.0)
    assert epsilon_of_rdp([2.0, 4.0], [0.0, 0.0], 1e-9)[0] == 0.0
    assert math.isinf(epsilon_of_rdp([2.0, 4.0], [0.1, 0.2], 0.0)[0])
    assert math.isinf(epsilon_of_rdp([2.0, 4.0], [math.inf, math.inf], 1e-5)[0])
    assert epsilon_of_rdp([2.0, 4.0], [math.inf, 0.2], 1e-5)[1] == 4.0


@pytest.mark.parametrize(
    ("orders", "divergences"), [([1.0], [0.1]), ([2.0], [0.1, 0.2]), ([2.0], [-0.1])]
)
def test_bad_curves_are_refused(orders: list[float], divergences: list[float]) -> None:
    with pytest.raises(InvalidParameter):
        epsilon_of_rdp(orders, divergences, 0.5)


ORDERS = (2, 4, 8, 16, 32, 64)
GAUSSIAN = np.array(ORDERS) / 50.0


def _plain(divergences: np.ndarray, delta: float) -> float:
    from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon

    return float(compute_epsilon(np.array(ORDERS), divergences, delta)[0])


def test_without_slack_it_is_the_usual_conversion() -> None:
    found, plain = ApproximateRdp(ORDERS, GAUSSIAN, 0.0).epsilon(delta=1e-5), _plain(GAUSSIAN, 1e-5)
    assert plain <= found <= plain * (1 + 1e-12)  # ours is rounded up


@pytest.mark.parametrize("slack", [1e-12, 1e-9, 1e-7, 1e-6])
def test_epsilon_is_the_least_one_for_which_delta_is_left(slack: float) -> None:
    curve = ApproximateRdp(ORDERS, GAUSSIAN, slack)
    epsilon = curve.epsilon(delta=1e-5)
    assert epsilon > _plain(GAUSSIAN, 1e-5)
    assert _plain(GAUSSIAN, 1e-5 - slack * (1 + math.exp(epsilon))) <= epsilon
    less = epsilon * (1 - 1e-6)
    assert _plain(GAUSSIAN, 1e-5 - slack * (1 + math.exp(less))) > less


def test_a_leak_that_only_the_slack_covers_is_covered() -> None:
    """With probability 1e-6 the answer tells all: no divergence is finite, and delta must stay
    above that probability.
    """
    curve = ApproximateRdp(ORDERS, np.zeros(len(ORDERS)), 1e-6)
    assert curve.epsilon(delta=1e-5) < 1.0
    assert math.isinf(curve.epsilon(delta=1.9e-6))
    assert curve.spare(epsilon=1.0, delta=1e-5) == pytest.approx(1e-5 - 1e-6 * (1 + math.e))
    assert curve.spare(epsilon=1000.0, delta=1e-5) == -math.inf


def test_sums_and_multiples_add_up_slacks() -> None:
    label, bit = ApproximateRdp(ORDERS, GAUSSIAN, 1e-9), ApproximateRdp(ORDERS, GAUSSIAN / 10, 0.0)
    total = 3 * label + 5 * bit
    assert total.divergences == pytest.approx(3.5 * GAUSSIAN)
    assert total.slack == pytest.approx(3e-9)
    assert (0 * label).slack == 0.0
    with pytest.raises(InvalidParameter, match="same for both"):
        label + ApproximateRdp((2,), np.ones(1), 0.0)
    with pytest.raises(TypeError):
        label + GAUSSIAN  # type: ignore[operator]
    with pytest.raises(ValueError, match="read-only"):
        label.divergences[0] = 0.0
