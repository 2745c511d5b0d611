"""The table of labels end to end on digits: every rung, cached cells, the files it writes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from papers.datasets import load
from papers.posthoc import label_tables
from papers.posthoc.settings import SETTINGS
from reticent.training.progress import silent

SMALL = replace(
    SETTINGS["mnist"],
    data="digits",
    latent_dimension=2,
    embedder_epochs=3,
    embedder_width=32,
    hidden=(8,),
    epochs=2,
    batch_size=500,
)


def test_small_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_tables, "_PLAIN_EPOCHS", 2)
    data = load("digits")

    def run(seed: int, *, iterations: int = 100, table_radius: float = 0.5):
        return label_tables.run(
            data,
            SMALL,
            tmp_path / str(seed),
            seed=seed,
            radius=0.5,
            epsilons=(1.0, 5.0),
            iterations=iterations,
            table_radius=table_radius,
            report=silent,
        )

    runs = [run(0), run(1)]
    for results in runs:
        assert set(results["1"]) == {"response", "hop", "slope", "table", "auto"}
        assert set(results["5"]) == {"response", "hop", "slope", "auto"}
        for found in results.values():
            rungs = [rung for name, rung in found.items() if name != "auto"]
            assert found["auto"]["held"] == max(rung["held"] for rung in rungs)
            assert all(0.0 < rung["accuracy"] < 1.0 for rung in rungs)
        assert results["1"]["table"]["worth"] <= results["1"]["table"]["bound"]
    # a second run reads every cell
    monkeypatch.setattr(label_tables, "exact_table", None)
    assert run(0) == runs[0]
    with pytest.raises(TypeError, match="not callable"):
        run(0, iterations=150)

    # no table is solved below the least radius, and a page without one has no row for it
    without = run(0, table_radius=0.6)
    assert set(without["1"]) == {"response", "hop", "slope", "auto"}
