"""Releases of one of the likeliest labels, fitted and answered as a user does."""

from __future__ import annotations

import numpy as np
import pytest

from reticent import PowerEncoder
from reticent.noise import SeededSampler
from reticent.systems import VectorTraining
from reticent.systems.power.clear_fitting import fit_likeliest
from reticent.systems.power.protection import Protection
from reticent.systems.power.query import PowerSetting
from reticent.systems.power.settings import RowFit
from reticent.tables import Categorical, Numeric, TabularSchema
from reticent.training.progress import silent

SCHEMA = TabularSchema(
    (*(Numeric(name, 0, 1) for name in "abc"), Categorical("kind", ("p", "q", "r")))
)


def table(count: int, *, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Each kind has two labels of its own, and a checkerboard of two numbers says which."""
    random = np.random.default_rng(seed)
    rows = np.empty((count, 4), dtype=object)
    numbers = random.random((count, 3))
    kinds = random.integers(0, 3, count)
    rows[:, :3], rows[:, 3] = numbers, np.array(["p", "q", "r"])[kinds]
    side = np.floor(4 * numbers[:, 0]).astype(int) + np.floor(4 * numbers[:, 1]).astype(int)
    return rows, (kinds + side % 2) % 4


def encoder(**fields: object) -> PowerEncoder:
    settings = {
        "epsilon": 1.0,
        "delta": 0.0,
        "radius": 0.1,
        "training": VectorTraining(epochs=2),
        "random_state": 0,
    }
    return PowerEncoder(schema=SCHEMA, **{**settings, **fields})  # type: ignore[arg-type]


def test_what_is_stated_is_what_a_release_is_worth() -> None:
    """Scores on held-out rows, exactly over the response, against answers that were drawn."""
    rows, labels = table(3_000, seed=0)
    encoded = SCHEMA.encode(rows)
    required = PowerSetting(
        mechanism="code", epsilon=1.0, delta=0.0, radius=0.1, scoring="accuracy"
    )
    half = VectorTraining(calibration_share=0.5)
    fit = RowFit(SCHEMA, required, encoded, labels, half, 0, silent)
    found = list(fit_likeliest(Protection(SCHEMA, 0.1), fit))
    assert {fitted.query.plan.candidates for fitted in found} == {2, 3, 4}
    best = max(found, key=lambda fitted: fitted.query.plan.utility)
    private, wanted = table(5_000, seed=1)
    encoded_encoder = encoder()
    encoded_encoder.query_, encoded_encoder.n_features_in_ = best.query, 4
    released = encoded_encoder.draw(encoded_encoder.checked(private), SeededSampler(0)).values
    right = (released[:, :4].argmax(axis=1) == wanted).mean()
    assert right == pytest.approx(best.query.plan.utility, abs=0.06)
    assert right > 0.55
