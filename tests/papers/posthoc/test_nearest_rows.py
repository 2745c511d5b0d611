"""The table of public graphs end to end on digits: every graph, cached cells, the page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from papers.datasets import load
from papers.posthoc import nearest_rows
from papers.posthoc.settings import SETTINGS
from papers.result_files import cached_result
from reticent.demos.posthoc import RESPONSE, response_accuracy
from reticent.training.progress import silent

SMALL = replace(
    SETTINGS["mnist"], data="digits", latent_dimension=4, embedder_epochs=1, embedder_width=32
)
GRAPHS = {"the 3 nearest": (3, False), "the 3 nearest of another label": (3, True)}


def small(folder: Path, seed: int):
    return nearest_rows.run(
        load("digits"),
        SMALL,
        folder / f"seed{seed}",
        epsilons=[1.0],
        rows=200,
        nodes=60,
        seed=seed,
        report=silent,
    )


def test_small_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest_rows, "GRAPHS", GRAPHS)
    runs = [small(tmp_path, 0), small(tmp_path, 1)]
    near, other = (runs[0]["graphs"][name]["1"] for name in GRAPHS)
    assert near["worth"] <= near["bound"]
    assert 0.0 < other["accuracy"] < near["accuracy"] < 1.0
    assert other["other"] == 1.0 > near["other"]
    assert near["joined"] >= 3.0
    label = cached_result(tmp_path / "seed0" / "nearest-row-cells" / "label.json", dict)
    expected = response_accuracy(label["accuracy"], epsilon=1.0, classes=10)
    assert runs[0][RESPONSE]["1"]["accuracy"] == expected
    page = nearest_rows.markdown("Title", runs, notes=["note"])
    mean = (near["accuracy"] + runs[1]["graphs"]["the 3 nearest"]["1"]["accuracy"]) / 2
    assert f"| the 3 nearest: the best table | {mean:.3f} ± " in page
    assert "| the 3 nearest: weights by edges, no solver | " in page
    assert runs[0]["simple"]["the 3 nearest"]["1"]["accuracy"] < near["accuracy"] + 0.05
    assert f"| {RESPONSE}: any two pictures | " in page
    monkeypatch.setattr(nearest_rows, "cached_embedder", None)
    assert small(tmp_path, 0) == runs[0]
