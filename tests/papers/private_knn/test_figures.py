"""The supplement's figures, on fewer orders, against the golden values and against themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from papers.private_knn import figures as knn_figures
from papers.private_knn.figures import ScreeningSettings

GOLDEN = json.loads(
    (Path(__file__).parents[2] / "accounting" / "golden.json").read_text(encoding="utf-8")
)


def test_numbers_against_the_golden_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knn_figures, "QUERIES", (1, 8192))
    results = knn_figures.run(ScreeningSettings(largest_order=10))
    row = GOLDEN["screening"]["rdp"]["10"]
    assert results["every_vote"][-1] == pytest.approx(row["safe_from_0"], rel=1e-9)
    # The golden values of one vote have one direction, which is at most the larger one.
    at_threshold = results["surface"][results["votes"].index(210)][-1]
    assert row["at_threshold_210"] <= at_threshold <= 1.01 * row["at_threshold_210"]
    totals = GOLDEN["screening_8192"]["0.25"]["1e-05"]
    assert results["spending"]["every largest vote"][-1] == pytest.approx(
        totals["screen_sub_exact_safe"], rel=2e-3
    )
    assert results["spending"]["sampled Gaussian, loss distribution"][-1] == pytest.approx(
        totals["gaussian_sub_pld"], abs=1e-3
    )
