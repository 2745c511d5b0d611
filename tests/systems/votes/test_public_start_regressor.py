"""A regression that starts from public targets: what is public of it, and what is saved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from reticent.systems import PublicStartRegressor
from reticent.systems.votes.estimator import Given
from tests.systems.votes.tiny import Told, told

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(1500, 4))
TARGETS = ROWS[:, 0] + np.abs(ROWS[:, 1]) + 0.3 * RNG.normal(size=1500)
PUBLIC: dict[str, Any] = {"public_X": ROWS[1400:], "public_y": TARGETS[1400:]}


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
    voters, public = made._ready(Given(np.full((1, 4), 9.0), [-1e9], **PUBLIC))
    session = Told(made._mechanism())
    made.learn(voters, public, session)  # type: ignore[arg-type]
    bound = session.mechanism.blocks[0].bound
    longest = max(float(np.linalg.norm(totals[0])) for totals in session.totals)
    assert 0.99 * bound < longest <= bound
