"""The supplement's figures, on fewer orders, against the golden values and against themselves."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
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


def test_files_and_what_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knn_figures, "QUERIES", (1, 64))
    small = ScreeningSettings(
        neighbours=60, threshold=42.0, sigma=17.0, shown=(6, 42, 60), largest_order=12
    )
    monkeypatch.setattr(knn_figures, "ScreeningSettings", lambda: small)
    knn_figures.main(["--out", str(tmp_path)])
    numbers = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))
    spending = numbers["spending"]
    for name in ("largest vote 6", "largest vote 42", "largest vote 60"):
        assert np.all(
            np.array(spending[name]) <= np.array(spending["every largest vote"]) * (1 + 1e-12)
        )
    assert np.all(np.array(numbers["shortcut"]) <= np.array(numbers["every_vote"]) * (1 + 1e-12))
    assert "| every largest vote |" in (tmp_path / "figures.md").read_text(encoding="utf-8")
    assert all((tmp_path / f"figure-{number}.png").stat().st_size > 5000 for number in (1, 2, 3))
