"""A regression that starts from public targets: what is public of it, and what is saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import (
    ExtraTreesRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor

from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.release.fits import not_counted
from reticent.systems import PublicStartRegressor
from reticent.training.public_targets import TargetPool
from tests.systems.votes.tiny import Told, told

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(1500, 4))
TARGETS = ROWS[:, 0] + np.abs(ROWS[:, 1]) + 0.3 * RNG.normal(size=1500)
PUBLIC: dict[str, Any] = {"public_X": ROWS[1400:], "public_y": TARGETS[1400:]}
HELD = [
    Ridge(),
    HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=5, random_state=0),
    RandomForestRegressor(5, random_state=0),
    ExtraTreesRegressor(5, random_state=0),
]


def model(**more: Any) -> PublicStartRegressor:
    settings = {"epsilon": 4.0, "delta": 1e-5, "target_range": (-3, 5), "pool": [Ridge()]}
    return PublicStartRegressor(**{**settings, **more})


@pytest.mark.parametrize("records", [None, 400])
def test_records_reach_the_model_by_released_sums_alone(records: int | None) -> None:
    found = []
    for n in (400, 7):
        made = model(records=records)
        told(made, ROWS[:n], -TARGETS[:n], **PUBLIC)
        found.append(np.r_[made.weights_[:, 0], made.cuts_])
    assert np.array_equal(*found)


@pytest.mark.parametrize("counting", ["add-remove", "replace"])
def test_public_targets_that_are_all_alike_stop_no_fit_that_is_paid(counting: str) -> None:
    """Public models are sure of everything then, and nothing may be divided by their spread."""
    made = model(records=400, counting=counting, epsilon=0.1)
    made.fit(ROWS[:400], TARGETS[:400], public_X=PUBLIC["public_X"], public_y=np.zeros(100))
    assert np.isfinite(made.predict(ROWS[:9])).all()


def test_a_record_moves_a_gradient_by_its_stated_length_and_no_more() -> None:
    """A target far beyond what public models say of it: its residual is cut."""
    made = model(records=1, rows="embedding")
    voters, public = made._ready(
        np.full((1, 4), 9.0), [-1e9], PUBLIC["public_X"], PUBLIC["public_y"], None
    )
    session = Told(made._mechanism())
    made.learn(voters, public, session)  # type: ignore[arg-type]
    bound = session.mechanism.blocks[0].bound
    longest = max(float(np.linalg.norm(totals[0])) for totals in session.totals)
    assert 0.99 * bound < longest <= bound


def test_private_records_mend_what_public_models_do_not_know() -> None:
    """A ridge regression cannot know of |x|, bins and leaves do. Rows and noise are seeded."""
    with not_counted("a test: nothing leaves"):
        made = model(records=1400).simulate_fit(ROWS[:1400], TARGETS[:1400], seed=0, **PUBLIC)
    start = made.space_
    alone = start.pools[0].offsets(start.row_details.scaled(ROWS))[:, 0] * 4.0 + 1.0
    errors = [np.square(TARGETS - each).mean() for each in (made.predict(ROWS), alone)]
    assert errors[0] < 0.8 * errors[1]


def test_a_saved_model_of_two_targets_answers_as_the_fitted_one(tmp_path: Path) -> None:
    both = np.column_stack([TARGETS, ROWS[:, 0]])
    given = {"public_X": ROWS[1400:], "public_y": both[1400:]}
    made = model(pool=HELD, target_range=((-3, -2), (5, 2)))
    with not_counted("a test: nothing leaves"):
        made.simulate_fit(ROWS[:300], both[:300], seed=0, **given)
    other = PublicStartRegressor.load(made.save(tmp_path / "model"))
    assert np.array_equal(made.predict(ROWS), other.predict(ROWS))
    assert made.predict(ROWS).shape == (1500, 2)


def test_arrays_of_a_pool_predict_as_its_models_do() -> None:
    """Trees compare in single precision: no number here is so close to a threshold."""
    halves = np.clip(TARGETS / 4.0, -1.0, 1.0)
    pool, held_out = TargetPool.fitted(ROWS[:300], halves[:300], HELD)
    assert held_out.shape == (300, 1)
    expected = np.full(len(ROWS), pool.constant)
    for one, weight in zip(HELD, pool.weights, strict=True):
        fit = one.fit(ROWS[:300], halves[:300])
        expected += weight * (np.clip(fit.predict(ROWS), -1, 1) - pool.constant)
    np.testing.assert_allclose(pool.offsets(ROWS)[:, 0], expected, atol=1e-9)


def test_what_cannot_be_used_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        model().fit(ROWS, TARGETS, public_X=ROWS)
    with pytest.raises(InvalidParameter):
        model(pool=[3]).fit(ROWS, TARGETS, **PUBLIC)
    with not_counted("a test: nothing leaves"):
        made = model(pool=[KNeighborsRegressor()]).fit(ROWS[:99], TARGETS[:99], **PUBLIC)
    with pytest.raises(InvalidInput):
        made.save(tmp_path / "model")
