"""The ladder's table end to end on digits: every rung, cached cells, the file it writes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from papers.posthoc import ladder
from papers.posthoc.settings import SETTINGS
from reticent.datasets import load
from reticent.training.progress import silent

SMALL = replace(
    SETTINGS["mnist"],
    data="digits",
    latent_dimension=3,
    embedder_epochs=2,
    embedder_width=32,
    published_epochs=1,
)


def small(folder: Path, **changed):
    settings = {"radii": (0.5,), "epsilons": (5.0,), "seed": 0, "embedder_seed": 0, **changed}
    return ladder.run(load("digits"), SMALL, folder, report=silent, **settings)


def test_small_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [small(tmp_path, rows=100), small(tmp_path, rows=100, seed=1)]
    found = runs[0]["0.5"]["5"]
    rungs = {name: rung for name, rung in found.items() if name != "auto"}
    assert len(rungs) == 7
    assert found["auto"]["score"] == max(rung["score"] for rung in rungs.values())
    assert found["auto"]["accuracy"] == found[found["auto"]["by"]]["accuracy"]
    assert all(0.0 < rung["accuracy"] < 1.0 for rung in rungs.values())
    assert found["identity"]["outputs"] == 3.0
    assert not (tmp_path / "seed1" / "embedder.safetensors").exists()
    # another seed takes other rows and noise
    assert runs[1]["0.5"]["5"]["identity"] != found["identity"]
    # a second run, and another radius at the same ratio, read every cell
    monkeypatch.setattr(ladder, "cached_embedder", None)
    assert small(tmp_path) == runs[0]
    assert small(tmp_path, radii=(0.1,), epsilons=(1.0,))["0.1"]["1"] == found

    text = ladder.markdown("Small", runs)
    accuracies = [run["0.5"]["5"][ladder.LIVE]["accuracy"] for run in runs]
    mean, error = sum(accuracies) / 2, abs(accuracies[0] - accuracies[1]) / 2
    assert f"| live coordinates | {mean:.3f} ± {error:.3f} |" in text
    gains = [run["0.5"]["5"][ladder.TRAINED]["accuracy"] for run in runs]
    gain = sum(gains) / 2 - mean
    assert f"| training that starts at the live coordinates, less these | {gain:+.3f} ±" in text


def test_unknown_data_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        ladder.main(["--data", "nothing"])
    assert "invalid choice" in capsys.readouterr().err
