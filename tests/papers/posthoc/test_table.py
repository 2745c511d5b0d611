"""The posthoc table end to end on digits: proved totals, cached cells, the files it writes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from papers.datasets import load
from papers.posthoc import cached_embedder
from papers.posthoc import table as posthoc_table
from papers.posthoc.settings import DELTAS, SETTINGS
from reticent.training.progress import silent

SMALL = replace(
    SETTINGS["mnist"],
    data="digits",
    latent_dimension=3,
    embedder_epochs=2,
    embedder_width=32,
    published_outputs=2,
    published_hidden=(4,),
    published_epochs=1,
    outputs=(2, 2, 2, 2),
    hidden=(8,),
    epochs=2,
    batch_size=500,
)


def test_small_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posthoc_table, "PUBLISHED_ROWS", {"Encoder": ()})
    monkeypatch.setattr(posthoc_table, "EPSILONS", (2.0,))
    small = replace(SMALL, outputs=(2,), first_noise=(0.5,))
    data = load("digits")
    results = posthoc_table.run(data, small, tmp_path, seed=0, report=silent)
    for delta in DELTAS:
        assert results["published"]["Encoder"]["2"][f"{delta:g}"]["epsilon"] <= 2.0 * (1 + 1e-9)
        assert results["published"]["Encoder"]["2"][f"{delta:g}"]["delta"] <= delta
    for kind in ("embedding", "label"):
        ours = results["ours"][kind]["2"]
        assert (ours["delta"], ours["withheld"]) == (0.0, 0.0)
        assert 0 <= ours["accuracy"] <= 1

    text = posthoc_table.markdown(results)
    assert "| Encoder |" in text
    assert "**ours, label**" in text
    kept = np.exp(2.0) / (np.exp(2.0) + 9)
    exact = round(results["published"]["Encoder"]["informal"], 3)
    expected = exact * kept + (1 - exact) * (1 - kept) / 9
    assert f"| randomised response, label (delta 0) | {exact:.3f} | {expected:.3f} |" in text
    drawing = posthoc_table.figure(results)
    drawing.savefig(tmp_path / "table.png")
    assert (tmp_path / "table.png").stat().st_size > 5000

    # A second run reads every cell.
    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("a cached cell was computed again")

    for name in ("our_labels", "our_vectors", "vector_release", "published_network"):
        monkeypatch.setattr(posthoc_table, name, forbidden)
    monkeypatch.setattr(cached_embedder, "train_embedder", forbidden)
    again = posthoc_table.run(data, small, tmp_path, seed=0, report=silent)
    assert json.dumps(again) == json.dumps(results)
