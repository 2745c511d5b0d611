from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant

from reticent.accounting import epsilon_of_rdp
from reticent.accounting.renyi import DEFAULT_ORDERS
from reticent.core.errors import InvalidParameter


def _curves() -> list[np.ndarray]:
    orders, rng = np.asarray(DEFAULT_ORDERS), np.random.default_rng(3)
    return [10.0 ** rng.uniform(-12, 2) * orders ** rng.uniform(0.2, 1.5) for _ in range(40)]


@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.01, 0.3])
def test_epsilon_is_that_of_dp_accounting_and_never_below_the_exact_one(delta: float) -> None:
    for curve in _curves():
        found, order = epsilon_of_rdp(DEFAULT_ORDERS, curve, delta)
        expected, _ = rdp_privacy_accountant.compute_epsilon(DEFAULT_ORDERS, curve, delta)
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
