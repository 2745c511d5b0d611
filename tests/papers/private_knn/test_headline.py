"""The headline table: every row runs, costs what it says, is computed once, and reads no
held-out label before scoring.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from papers.private_knn import headline as knn_headline
from papers.private_knn.headline import ROWS, run, settings_of, table
from reticent.accounting import PrivateKnnSteps, private_knn_total


def _small() -> knn_headline.HeadlineSettings:
    whole = settings_of("digits")
    return replace(whole, rounds=(20, 10), student=replace(whole.student, epochs=1), last_epochs=2)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    folder = tmp_path_factory.mktemp("headline")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(knn_headline, "settings_of", lambda data: _small())
        return run("digits", list(ROWS), folder=folder, seed=0)


def test_every_row_states_a_total_that_holds(rows: dict[str, dict]) -> None:
    assert list(rows) == list(ROWS)
    assert rows["Private-kNN, calibrated"]["epsilon"] <= 4.0
    assert rows["PATE, Gaussian noise, confident"]["epsilon"] <= 4.0
    assert rows["PATE, Laplace noise"]["epsilon"] == 4.0
    paper = rows["Private-kNN, the paper's setting"]
    steps = PrivateKnnSteps(
        queries=323,
        answers=323,
        neighbours=300,
        sampling_probability=0.15,
        sigma_votes=25.0,
        threshold=180.0,
        sigma_screening=75.0,
    )
    assert paper["epsilon"] == private_knn_total(steps, delta=1e-5, interval=None).epsilon
    text = table("digits", rows)
    assert text.count("\n| ") == 1 + len(ROWS)
    assert all(name in text for name in ROWS)
