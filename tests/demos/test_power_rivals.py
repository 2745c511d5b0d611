"""Simple methods on rows whose labels are known to follow from one column."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.datasets.table import Table
from reticent.demos.baselines import clear_columns
from reticent.demos.power import RESPONSE, Parts, Settings
from reticent.systems.power.channels import randomised_response
from reticent.tables import Categorical, Numeric, TabularSchema

SCHEMA = TabularSchema((Numeric("age", 0, 1), Categorical("town", ("a", "b"))))


def rows(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A label that is the town of nine tenths."""
    random = np.random.default_rng(seed)
    table = np.empty((count, 2), dtype=object)
    table[:, 0] = random.random(count)
    labels = random.integers(0, 2, count)
    told = np.where(random.random(count) < 0.9, labels, 1 - labels)
    table[:, 1] = np.array(["a", "b"])[told]
    return table, labels


@pytest.fixture(scope="module")
def parts() -> Parts:
    known, labels = rows(2_000, 0)
    tested, held = rows(1_000, 1)
    table = Table("towns", ("age", "town"), known, labels, tested, held, ("no", "yes"), "made up")
    return Parts(table, SCHEMA, Settings())


def test_scores_are_those_that_can_be_worked_out(parts: Parts) -> None:
    exact = np.eye(2)
    ours = parts.learnt(exact[parts.private_labels], exact[parts.held_out_labels])
    assert ours["accuracy"] == pytest.approx(1.0)
    found = parts.rivals(epsilon=2.0, radius=0.1)
    assert set(found) == {
        *(RESPONSE, "raw columns", "raw columns, one noise vector"),
        "categories in clear + noise",
    }
    # The town is right on .9, the response on .8808 of those.
    told = randomised_response(2, epsilon=2.0)[0, 0]
    right = 0.9 * told + 0.1 * (1 - told)
    spread = 4 * np.sqrt(right * (1 - right) / 1_000)
    assert abs(found[RESPONSE]["accuracy"] - right) < spread
    assert abs(found["categories in clear + noise"]["accuracy"] - 0.9) < 0.04
    assert found["raw columns"]["accuracy"] < found["categories in clear + noise"]["accuracy"]


def test_noise_is_on_what_is_protected_alone() -> None:
    encoded = SCHEMA.encode(rows(2_000, 5)[0])
    noisy = clear_columns(SCHEMA, encoded, epsilon=2.0, radius=0.1, seed=0)
    assert np.array_equal(noisy[:, 1:], encoded[:, 1:])
    noise = noisy[:, 0] - encoded[:, 0]
    assert np.abs(noise).mean() == pytest.approx(0.05, rel=0.1)
