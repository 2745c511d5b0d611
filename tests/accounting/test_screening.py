from __future__ import annotations

import itertools
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from reticent.accounting.screening import ScreeningDpEvent, pass_ratio, screening_rdp

ORDERS = ["2", "5", "10", "20", "32", "50", "80", "128"]


@pytest.mark.parametrize("order", ORDERS)
def test_golden_values(golden: dict[str, Any], order: str) -> None:
    row, parameters = golden["screening"]["rdp"][order], golden["screening"]["parameters"]
    for name, fewest, rate in (
        ("safe_from_0", 0, 1.0),
        ("in_range_from_30", 30, 1.0),
        ("sampled_0.25", 0, 0.25),
        ("sampled_0.05", 0, 0.05),
    ):
        event = ScreeningDpEvent(**{**parameters, "fewest": fewest})
        assert screening_rdp(event, [float(order)], sampling_probability=rate)[0] == pytest.approx(
            row[name], rel=1e-9
        )
    assert row["safe_from_0"] < row["gaussian"]


@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_discrete_noise_against_many_digits(rate: float) -> None:
    with mp.workdps(50):
        weights = {v: mp.exp(-(mp.mpf(v) ** 2) / 18) for v in range(-150, 151)}
        total = mp.fsum(weights.values())
        passes = [mp.fsum(w for v, w in weights.items() if t + v >= 7.5) / total for t in range(13)]
        for order in (2, 3.5, 40):
            worst = mp.mpf(0)
            for t, other in [
                pair
                for pair in itertools.product(range(13), repeat=2)
                if abs(pair[0] - pair[1]) == 1
            ]:
                p, q = (1 - mp.mpf(rate)) * passes[t] + mp.mpf(rate) * passes[other], passes[t]
                for x, y in ((p, q), (q, p)):
                    moment = x**order * y ** (1 - order) + (1 - x) ** order * (1 - y) ** (1 - order)
                    worst = max(worst, mp.log(moment) / (order - 1))
            step = ScreeningDpEvent(0, 12, 7.5, 3.0, discrete=True)
            assert screening_rdp(step, [order], sampling_probability=rate)[0] == pytest.approx(
                float(worst), rel=1e-9
            )


@pytest.mark.parametrize("discrete", [False, True])
def test_hardly_any_noise_overflows_nothing(discrete: bool) -> None:
    orders = np.array([1.01, 2, 50, 1000])
    step = ScreeningDpEvent(0, 300, 150, 0.3, discrete=discrete)
    for rate in (1.0, 0.01):
        cost = screening_rdp(step, orders, sampling_probability=rate)
        assert np.all(np.isfinite(cost))
        assert np.all(np.diff(cost) > 0)


def test_pass_ratio_golden_values(golden: dict[str, Any]) -> None:
    for row, (threshold, sigma) in zip(
        golden["shared_subsample"].values(), [(180, 75.0), (210, 85.0)], strict=True
    ):
        assert pass_ratio(ScreeningDpEvent(0, 300, threshold, sigma)) == pytest.approx(
            row["posterior_rate"]["pass_ratio"], rel=1e-9
        )
