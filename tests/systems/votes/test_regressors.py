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
from sklearn.metrics import r2_score

from reticent import MomentRegressor, NoisyGradientRegressor, load
from reticent.core import AddRemove, Guarantee, Scope
from reticent.core.errors import (
    CorruptBundle,
    InvalidInput,
    InvalidParameter,
    ReticentError,
)
from reticent.ledger import Ledger
from reticent.systems import Features
from reticent.systems.votes.released_regressor import ReleasedRegressor
from reticent.training.public_space import LENGTH, UNIT, cut_directions

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4000, 4))
Y = X @ np.array([2.0, -1.0, 0.5, 0.0]) + np.sin(2 * X[:, 0]) + 0.3 * RNG.normal(size=4000) + 10
PRIVATE, PUBLIC, TEST = slice(0, 3000), slice(3000, 3500), slice(3500, None)
RANGE = (0.0, 20.0)
SCOPE = Scope(subject="ward 7")

MODELS: dict[str, tuple[type[ReleasedRegressor], dict[str, Any], float]] = {
    "moments": (MomentRegressor, {}, 0.7),
    "gradient": (NoisyGradientRegressor, {"records": 3000}, 0.8),
}


def made(name: str, **changes: Any) -> ReleasedRegressor:
    kind, settings, _ = MODELS[name]
    given = {"epsilon": 4.0, "delta": 1e-5, "target_range": RANGE, **settings, **changes}
    return kind(**given)


def fitted(name: str = "moments", y: Any = Y, **changes: Any) -> ReleasedRegressor:
    model = made(name, **changes)
    return model.fit(X[PRIVATE], y[PRIVATE], public_X=X[PUBLIC], public_y=y[PUBLIC])


def quiet(name: str, **changes: Any) -> Any:
    """A model with nearly no noise."""
    return made(name, **changes).simulate_fit(
        X[PRIVATE], Y[PRIVATE], public_X=X[PUBLIC], seed=0, noise_scale=1e-9
    )


@pytest.fixture(params=MODELS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def test_models_learn(name: str) -> None:
    found = fitted(name)
    assert found.score(X[TEST], Y[TEST]) > MODELS[name][2]
    predicted = found.predict(1e6 * X[TEST])
    assert predicted.shape == (500,)
    assert RANGE[0] <= predicted.min() <= predicted.max() <= RANGE[1]
    assert found.guarantee.epsilon == 4.0
    assert "regression" in found.card().title
    assert any("range of the targets" in line for line in found.card().assumptions)


def test_moments_without_noise_are_regression_with_public_second_moments() -> None:
    model = quiet("moments", ridge=0.05, features=Features(reach=16.0))
    rows, public = (
        np.column_stack([model._points(part) / UNIT, np.ones(len(part))]) / 16.0
        for part in (X[PRIVATE], X[PUBLIC])
    )
    moments = public.T @ public / len(public)
    moments += 0.05 * np.trace(moments) / 5 * np.eye(5)
    expected = np.linalg.solve(moments, rows.T @ (Y[PRIVATE] - 10.0) / 10.0 / 3000)
    # Directions of length 1/16 have some 10 bits each.
    assert np.abs(model.weights_[:, 0] - expected).max() < 0.02 * np.abs(expected).max()


def test_steps_without_noise_end_at_least_squares() -> None:
    model = quiet("gradient", steps=60, residual=2.0)
    unit = cut_directions(model._points(X), intercept=1.0, reach=2.0) / LENGTH
    plain = Ridge(1e-9, fit_intercept=False).fit(unit[PRIVATE], Y[PRIVATE] - 10.0)
    away = model.predict(X[TEST]) - 10.0 - plain.predict(unit[TEST])
    assert np.abs(away).max() < 0.01 * np.std(Y)


def test_a_bundle_of_impossible_ranges_is_refused(tmp_path: Path) -> None:
    model = fitted()
    bundle = model.bundle()
    for key, value in (("lower", [30.0]), ("upper", []), ("upper", [20.0, 20.0])):
        changed = type(bundle)(
            bundle.system, {**bundle.settings, key: value}, bundle.arrays, bundle.card
        )
        with pytest.raises(CorruptBundle):
            type(model).load(changed.write(tmp_path / "changed", overwrite=True))


@pytest.mark.filterwarnings("ignore::reticent.PrivacyWarning")
def test_several_targets_are_one_release(name: str, tmp_path: Path) -> None:
    several = np.column_stack([Y, 100.0 * X[:, 1], -Y])
    ends = ([0.0, -500.0, -20.0], [20.0, 500.0, 0.0])
    model = fitted(name, several, target_range=ends)
    found = model.predict(X[TEST])
    assert found.shape == (500, 3)
    worst = min(r2_score(several[TEST, at], found[:, at]) for at in (0, 2))
    assert worst > MODELS[name][2] - 0.1
    assert model.guarantee.epsilon == 4.0
    again = load(model.save(tmp_path / "bundle"))
    assert np.array_equal(again.predict(X[TEST]), found)
    one = made(name).fit(X[PRIVATE], Y[PRIVATE, None], public_X=X[PUBLIC], public_y=Y[PUBLIC, None])
    assert one.predict(X[TEST]).shape == (500, 1)


@pytest.mark.filterwarnings("ignore::reticent.PrivacyWarning")
def test_one_release_of_several_has_less_noise_than_a_split_total() -> None:
    """Of L targets the joint noise is sqrt(L) that of one; L parts of epsilon take about L."""
    public = {"public_X": X[PUBLIC]}
    sigmas = {}
    for columns, epsilon in ((1, 1.0), (4, 1.0), (1, 0.25)):
        y = np.repeat(Y[PRIVATE, None], columns, axis=1)
        model = made("moments", epsilon=epsilon).fit(X[PRIVATE], y, **public)
        sigmas[columns, epsilon] = model.mechanism_.sigmas[0]
    assert sigmas[4, 1.0] / sigmas[1, 1.0] == pytest.approx(2.0, rel=1e-3)
    assert sigmas[1, 0.25] / sigmas[1, 1.0] > 3.5


def test_targets_that_do_not_fit_cost_nothing(tmp_path: Path) -> None:
    adjacency = AddRemove(1, data_set="ward 7")
    with closing(Ledger.create(tmp_path / "ledger.db")) as ledger:
        ledger.grant(SCOPE, Guarantee(9.0, 1e-3, adjacency))
        give = {"public_X": X[PUBLIC], "ledger": ledger, "scope": SCOPE}
        model = made("moments", epsilon=1.0, data_set="ward 7")
        bad = Y[PRIVATE].copy()
        bad[7] = np.nan
        refused: list[tuple[Any, Any]] = [
            (model, bad),
            (model, Y[PRIVATE][:-1]),
            (model, np.array(["high"] * 3000)),
            (model, None),
            (made("moments", data_set="ward 7", target_range=(5.0, 5.0)), Y[PRIVATE]),
            (made("moments", data_set="ward 7", target_range=None), Y[PRIVATE]),
            (made("moments", data_set="ward 7", target_range=(0.0, np.inf)), Y[PRIVATE]),
        ]
        for estimator, targets in refused:
            with pytest.raises((InvalidInput, InvalidParameter)):
                estimator.fit(X[PRIVATE], targets, **give)
        assert ledger.report().accounts == ()


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("moments", {"ridge": 0.0}),
        ("gradient", {"residual": 3.0}),
        ("moments", {"target_range": (0.0, "high")}),
    ],
)
def test_settings_out_of_range_are_refused(kind: str, changes: dict[str, Any]) -> None:
    with pytest.raises(ReticentError):
        fitted(kind, **changes)
