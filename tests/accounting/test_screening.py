from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from reticent.accounting.screening import ScreeningDpEvent, screening_rdp
from reticent.core.errors import InvalidParameter

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
        assert screening_rdp(event, [float(order)], sampling_probability=rate)[0] == pytest.approx(row[name], rel=1e-9)
    assert row["safe_from_0"] < row["gaussian"]


def test_never_above_the_gaussian_that_it_post_processes() -> None:
    orders = np.linspace(1.1, 300, 200)
    event = ScreeningDpEvent(fewest=0, most=40, threshold=25, sigma=6.0)
    assert np.all(screening_rdp(event, orders, sampling_probability=1.0) <= orders / (2 * 6.0**2))


@pytest.mark.parametrize(
    "wrong", [{"fewest": -1}, {"most": 0}, {"sigma": 0.0}, {"sigma": float("nan")}, {"fewest": 30, "most": 30}]
)
def test_bad_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match="expected"):
        ScreeningDpEvent(**{"fewest": 0, "most": 30, "threshold": 20, "sigma": 8.0, **wrong})
    with pytest.raises(InvalidParameter, match="sampling_probability"):
        screening_rdp(ScreeningDpEvent(0, 30, 20, 8.0), [2.0], sampling_probability=1.5)
