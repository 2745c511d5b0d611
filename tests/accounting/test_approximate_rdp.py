"""Divergences with a slack: what a conversion takes off delta, against a direct count of two
distributions that need it.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant

from reticent.accounting import ApproximateRdp
from reticent.core.errors import InvalidParameter

ORDERS = (2, 4, 8, 16, 32, 64)
GAUSSIAN = np.array(ORDERS) / 50.0


def _plain(divergences: np.ndarray, delta: float) -> float:
    return float(rdp_privacy_accountant.compute_epsilon(np.array(ORDERS), divergences, delta)[0])


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
