"""Every figure end to end on a small problem, the table on another, and the claims on close
blobs.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from papers.certified import figures as certified_figures
from papers.certified import table as certified_table
from papers.certified.problems import Problem

PNG = b"\x89PNG\r\n\x1a\n"


def small(_: str = "") -> Problem:
    random = np.random.default_rng(5)
    y, truth = random.integers(0, 2, 400), random.integers(0, 2, 160)
    clouds = [
        random.normal(size=(len(labels), 2)) + 3.0 * labels[:, None] - 1.5 for labels in (y, truth)
    ]
    return Problem(
        name="small",
        X=clouds[0],
        y=y,
        queries=clouds[1],
        truth=truth,
        training={"epochs": 2},
        k_max=25,
    )


@pytest.mark.parametrize("figure", ["2", "4", "5", "6", "8", "survive"])
def test_figures(figure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certified_figures, "problem_of", small)
    monkeypatch.setattr(certified_figures, "_SIZES", (1, 4))
    monkeypatch.setattr(certified_figures, "_QUERIES", (1, 100))
    monkeypatch.setattr(certified_figures, "MEMBERS", 4)
    monkeypatch.setattr(certified_figures, "_MOST_QUERIES", 1000)
    monkeypatch.setattr(
        certified_figures,
        "private_training",
        lambda *_, **__: dict.fromkeys(("DP-SGD", "tuned"), 0.9),
    )
    monkeypatch.setattr(certified_figures, "DP_SGD", "DP-SGD")
    monkeypatch.setattr(certified_figures, "TUNED", "tuned")
    path = certified_figures.run(figure, "blobs", tmp_path)
    charts = json.loads(path.with_suffix(".json").read_text())
    text = path.read_text()
    for chart in charts:
        assert chart["title"] in text
        values = [y for points in chart["series"].values() for _, y in points]
        assert values
        assert all(0 <= value <= 1 for value in values)
    assert path.with_suffix(".png").read_bytes().startswith(PNG)


def test_small_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certified_table, "problem_of", small)
    monkeypatch.setattr(
        certified_table,
        "private_training",
        lambda *_, **__: {certified_table.DP_SGD: 0.9, certified_table.TUNED: 0.8},
    )
    results = certified_table.run(("blobs",), tmp_path, seeds=3)
    again = certified_table.run(("blobs",), tmp_path, seeds=3)
    assert json.dumps(results) == json.dumps(again)
    ours = results["students"]["single model, **ours**"]["blobs"]["mean"]
    assert ours > 0.9
    text = certified_table.markdown(results)
    for row in certified_table.TEACHERS:
        assert f"| {row} |" in text
    assert "99.8" in text  # the paper's figure for blobs
