"""Simple methods on rows whose labels are known to follow from one column."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.demos.power.baselines import clear_columns
from reticent.demos.power.rungs import OURS, RESPONSE, SCORES, Comparison
from reticent.demos.power.score_table import score_section
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
    return SCHEMA.encode(table), labels


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    parts = [rows(1_000, seed) for seed in range(3)]
    return Comparison(SCHEMA, *(x for x, _ in parts), *(y for _, y in parts), 0)


def test_scores_are_those_that_can_be_worked_out(comparison: Comparison) -> None:
    channel = randomised_response(2, epsilon=2.0)
    exact = np.eye(2)
    found = comparison.scores(
        exact[comparison.private_labels],
        exact[comparison.held_out_labels],
        epsilon=2.0,
        radius=0.1,
        channel=None,
    )
    assert list(found)[:2] == [OURS, RESPONSE]
    assert set(found) == {
        OURS,
        RESPONSE,
        "raw columns",
        "raw columns, one noise vector",
        "categories in clear + noise",
    }
    assert all(set(scores) == set(SCORES) for scores in found.values())
    assert found[OURS]["accuracy"] == pytest.approx(1.0)
    # The town is right on .9, the response on .8808 of those.
    right = 0.9 * channel[0, 0] + 0.1 * channel[0, 1]
    spread = 4 * np.sqrt(right * (1 - right) / 1_000)
    assert abs(found[RESPONSE]["accuracy"] - right) < spread
    assert abs(found["categories in clear + noise"]["accuracy"] - 0.9) < 0.04
    assert found["raw columns"]["accuracy"] < found["categories in clear + noise"]["accuracy"]


def test_any_two_records_leave_no_category_in_clear(comparison: Comparison) -> None:
    channel = randomised_response(2, epsilon=2.0)
    outputs = np.eye(2)
    found = comparison.scores(
        outputs[comparison.private_labels],
        outputs[comparison.held_out_labels],
        epsilon=2.0,
        radius=None,
        channel=channel,
    )
    assert set(found) == {OURS, RESPONSE, "raw columns"}


def test_noise_is_on_what_is_protected_alone() -> None:
    encoded, _ = rows(2_000, 5)
    noisy = clear_columns(SCHEMA, encoded, epsilon=2.0, radius=0.1, seed=0)
    assert np.array_equal(noisy[:, 1:], encoded[:, 1:])
    noise = noisy[:, 0] - encoded[:, 0]
    assert np.abs(noise).mean() == pytest.approx(0.05, rel=0.1)


def test_the_best_of_each_score_is_bold() -> None:
    scores = {
        OURS: {"accuracy": 0.8, "balanced_accuracy": 0.7, "auc": 0.75, "information": 0.2},
        RESPONSE: {"accuracy": 0.9, "balanced_accuracy": 0.6, "auc": 0.7, "information": -0.1},
    }
    row = {"radius": None, "neighbours": "any two records", "epsilon": 2.0, "scores": scores}
    html = score_section({"settings": {"radii": [None]}, "rows": [row]})
    assert "<b>90.0 %</b>" in html
    assert "<b>70.0 %</b>" in html
    assert "<b>0.750</b>" in html
    assert "<b>0.200</b>" in html
    assert "-0.100" in html
    assert html.count("<b>") == 4
