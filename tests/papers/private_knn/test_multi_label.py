"""Attributes of digits under clipped votes: totals kept, more budget helps, files written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from papers.datasets import load
from papers.private_knn import multi_label as knn_multi_label
from papers.private_knn.multi_label import (
    SETTINGS,
    markdown,
    published_setting,
    run,
)

SMALL = replace(SETTINGS["digits"], queries=60, epsilons=(0.5, 50.0), taus=(2, 5))


def test_small_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SETTINGS, "digits", SMALL)
    knn_multi_label.main(["--data", "digits", "--out", str(tmp_path)])
    assert {path.name for path in tmp_path.iterdir()} == {
        f"multi-label-digits.{suffix}" for suffix in ("json", "md", "png")
    }
    results = run(load("digits"), SMALL, seed=0)
    for cells in results["cells"].values():
        for epsilon in SMALL.epsilons:
            assert cells[f"{epsilon:g}"]["epsilon"] <= epsilon
        assert cells["50"]["attributes_right"] > cells["0.5"]["attributes_right"]
        assert cells["50"]["sigma"] < cells["0.5"]["sigma"]
        assert cells["50"]["attributes_right"] == pytest.approx(cells["no noise"], abs=0.06)
    # A digit with five attributes loses half of each of its votes to a clip of 2.
    assert results["cells"]["5"]["no noise"] > results["cells"]["2"]["no noise"]
    assert "| 5 |" in markdown(results, published_setting())
