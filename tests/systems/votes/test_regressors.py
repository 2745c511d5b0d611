"""Regressors against plain regression in doubles where noise is nearly none; several targets, and
what is refused.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from reticent import NoisyGradientRegressor
from reticent.core import AddRemove, Guarantee, Scope
from reticent.core.errors import (
    InvalidInput,
    InvalidParameter,
)
from reticent.ledger import Ledger
from reticent.systems.votes.outputs import TARGET_STEPS, RangeOutput
from reticent.training.public_space import LENGTH, cut_directions

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4000, 4))
Y = X @ np.array([2.0, -1.0, 0.5, 0.0]) + np.sin(2 * X[:, 0]) + 0.3 * RNG.normal(size=4000) + 10
PRIVATE, PUBLIC, TEST = slice(0, 3000), slice(3000, 3500), slice(3500, None)
RANGE = (0.0, 20.0)
SCOPE = Scope(subject="ward 7")


def made(**changes: Any) -> NoisyGradientRegressor:
    given = {"epsilon": 4.0, "delta": 1e-5, "target_range": RANGE, "records": 3000, **changes}
    return NoisyGradientRegressor(**given)


def quiet(**changes: Any) -> Any:
    """A model with nearly no noise."""
    return made(**changes).simulate_fit(
        X[PRIVATE], Y[PRIVATE], public_X=X[PUBLIC], seed=0, noise_scale=1e-9
    )


def test_steps_without_noise_end_at_least_squares() -> None:
    model = quiet(steps=60, residual=2.0)
    unit = cut_directions(model._points(X), intercept=1.0, reach=2.0) / LENGTH
    plain = Ridge(1e-9, fit_intercept=False).fit(unit[PRIVATE], Y[PRIVATE] - 10.0)
    away = model.predict(X[TEST]) - 10.0 - plain.predict(unit[TEST])
    assert np.abs(away).max() < 0.01 * np.std(Y)


def test_targets_beyond_the_range_count_as_its_ends() -> None:
    steps = RangeOutput(*RANGE).codes([-1e300, -0.1, 0.0, 10.0, 20.0, 20.1, 1e300], 7)
    assert steps.tolist() == [-TARGET_STEPS] * 3 + [0] + [TARGET_STEPS] * 3


def test_targets_that_do_not_fit_cost_nothing(tmp_path: Path) -> None:
    adjacency = AddRemove(1, data_set="ward 7")
    with closing(Ledger.create(tmp_path / "ledger.db")) as ledger:
        ledger.grant(SCOPE, Guarantee(9.0, 1e-3, adjacency))
        give = {"public_X": X[PUBLIC], "ledger": ledger, "scope": SCOPE}
        model = made(epsilon=1.0, data_set="ward 7")
        bad = Y[PRIVATE].copy()
        bad[7] = np.nan
        refused: list[tuple[Any, Any]] = [
            (model, bad),
            (model, Y[PRIVATE][:-1]),
            (model, np.array(["high"] * 3000)),
            (model, None),
            (made(data_set="ward 7", target_range=(5.0, 5.0)), Y[PRIVATE]),
            (made(data_set="ward 7", target_range=None), Y[PRIVATE]),
            (made(data_set="ward 7", target_range=(0.0, np.inf)), Y[PRIVATE]),
        ]
        for estimator, targets in refused:
            with pytest.raises((InvalidInput, InvalidParameter)):
                estimator.fit(X[PRIVATE], targets, **give)
        assert ledger.report().accounts == ()
