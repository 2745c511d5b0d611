"""`reticent demo posthoc` writes its whole folder, and only its own."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np

from reticent.demos import posthoc
from reticent.training.heads import HeadConfig


def test_the_folder_is_complete_and_its_bundle_works(command, tmp_path, monkeypatch):
    whole = posthoc.suggested("digits", seed=1)
    tiny = replace(
        whole,
        epsilons=(8.0,),
        embedder=replace(whole.embedder, epochs=2),
        epochs=2,
        published=("Encoder",),
        published_epochs=1,
        head=HeadConfig(epochs=2, hidden=(16,)),
        attack=replace(whole.attack, epochs=1),
        copies=1,
        train_rows=300,
        test_rows=60,
    )
    monkeypatch.setattr(posthoc, "suggested", lambda data, *, seed: tiny)
    answer = command("demo", "posthoc", "--output", tmp_path / "out")
    assert answer.status == 0, answer.err
    assert f"Open {tmp_path / 'out' / 'index.html'}" in answer.out
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "bundle",
        "card.md",
        "held-out.npy",
        "index.html",
        "results.json",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (
        json.loads((tmp_path / "out" / "results.json").read_text())["settings"]["train_rows"] == 300
    )
    done = command(
        "release",
        tmp_path / "out" / "bundle",
        "--input",
        tmp_path / "out" / "held-out.npy",
        "--output",
        tmp_path / "y.npz",
    )
    assert done.status == 0
    with np.load(tmp_path / "y.npz") as released:
        assert released["values"].shape == (60, tiny.outputs)
