"""`reticent demo power`: what it writes, what can be done with it, and what it refuses before it
works.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from reticent.attacks.hijacking import HijackingConfig
from reticent.cli.main import run
from reticent.demos import power
from reticent.demos.power import Settings
from reticent.systems import PowerEncoder

WRITTEN = ["bundle", "card.md", "held-out.csv", "index.html", "results.json"]


def tiny(*, seed: int) -> Settings:
    return Settings(
        epsilons=(3.0,),
        radii=(None,),
        epochs=1,
        training_rows=400,
        held_out_rows=60,
        hijacking=HijackingConfig(epochs=1),
        seed=seed,
    )


def test_the_command_writes_everything_and_its_bundle_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(power, "Settings", tiny)
    target = tmp_path / "demo"
    assert run(["demo", "power", "--output", str(target), "--seed", "5"]) == 0
    assert f"Open {target / 'index.html'}" in capsys.readouterr().out
    assert sorted(path.name for path in target.iterdir()) == WRITTEN
    results = json.loads((target / "results.json").read_text())
    assert (results["data"]["name"], results["settings"]["seed"]) == ("adult-sample", 5)
    assert (
        PowerEncoder.load(target / "bundle").card().to_markdown()
        == (target / "card.md").read_text()
    )
    assert (target / "index.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    # The commands that the page shows, run as it shows them.
    monkeypatch.chdir(target)
    assert run(["card", "bundle"]) == 0
    assert run(["release", "bundle", "--input", "held-out.csv", "--output", "released.npz"]) == 0
    with np.load("released.npz") as released:
        assert len(released["values"]) == 60
        assert not released["withheld"].any()
