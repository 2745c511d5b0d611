"""Neighbours and teachers on digits at the same totals, small."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from papers.private_knn import tradeoff as knn_tradeoff
from papers.private_knn.tradeoff import SETTINGS, best, methods


@pytest.mark.slow
def test_small_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = replace(SETTINGS["digits"], epsilons=(1.0, 100.0), queries=(60,))
    monkeypatch.setitem(SETTINGS, "digits", small)
    knn_tradeoff.main(["--data", "digits", "--out", str(tmp_path)])
    results = json.loads((tmp_path / "tradeoff-digits.json").read_text(encoding="utf-8"))
    assert methods(results) == ["Private-kNN, k = 30", "PATE, 25 teachers"]
    assert len(results["rows"]) == 2 * 2 * 2
    for method in methods(results):
        low, high = best(results, method, 1.0), best(results, method, 100.0)
        assert low["student"] < high["student"]
        assert low["sigma_votes"] > 5 * high["sigma_votes"]
    unscreened = [row for row in results["rows"] if not row["screened"]]
    assert all(row["answered"] == 1.0 for row in unscreened)
    # Hardly any noise is left at epsilon 100: labels are as right as the votes themselves.
    assert min(row["labels_right"] for row in unscreened if row["epsilon"] == 100.0) > 0.6
    assert results["true_labels"]["60"] > 0.5
    assert "## 60 queries" in (tmp_path / "tradeoff-digits.md").read_text(encoding="utf-8")
    assert (tmp_path / "tradeoff-digits.png").stat().st_size > 5000
