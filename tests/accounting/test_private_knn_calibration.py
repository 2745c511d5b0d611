from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reticent.accounting import calibrate_private_knn, private_knn_total
from reticent.core.errors import CalibrationFailed

SETTING: dict[str, Any] = {
    "epsilon": 1.0,
    "delta": 1e-5,
    "queries": 400,
    "answers": 300,
    "neighbours": 200,
    "sampling_probability": 0.1,
    "threshold": 120.0,
    "noise_ratio": 3.0,
}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"shared_subsample": True},
        {"threshold": None, "noise_ratio": None},
        pytest.param({"epsilon": 0.25}, marks=pytest.mark.slow),
        {"epsilon": 8.0},
        {"vote_sensitivity": 4.0, "one_label": False},
    ],
    ids=["fresh", "shared", "unscreened", "tight", "loose", "attributes"],
)
def test_the_total_is_met_and_hardly_missed(changes: dict[str, Any]) -> None:
    wanted = {**SETTING, **changes}
    steps = calibrate_private_knn(**wanted)
    spent = private_knn_total(steps, delta=wanted["delta"]).epsilon
    assert 0.995 * wanted["epsilon"] <= spent <= wanted["epsilon"]
    if steps.sigma_screening is not None:
        assert steps.sigma_screening == pytest.approx(3.0 * steps.sigma_votes)
    less = replace(
        steps,
        sigma_votes=0.99 * steps.sigma_votes,
        sigma_screening=None if steps.sigma_screening is None else 0.99 * steps.sigma_screening,
    )
    assert private_knn_total(less, delta=wanted["delta"]).epsilon > wanted["epsilon"]


def test_an_impossible_total_is_refused() -> None:
    with pytest.raises(CalibrationFailed, match="ask fewer queries"):
        calibrate_private_knn(**{**SETTING, "epsilon": 1e-7})
