"""The tables of reconstruction end to end on digits: more noise shows less, cells are cached."""

from __future__ import annotations

from pathlib import Path

import pytest

from papers.datasets import load
from papers.posthoc import reconstruction_table as table
from papers.posthoc.settings import SETTINGS
from reticent.attacks import ReconstructionConfig
from reticent.demos.posthoc import RESPONSE
from reticent.training.embedder import EmbedderConfig, train_embedder
from reticent.training.progress import silent

EMBEDDER = EmbedderConfig(
    image_shape=(8, 8), latent_dimension=4, beta=0.4, epochs=12, batch_size=64, width=64
)
DECODER = ReconstructionConfig(epochs=12, hidden=(64,), batch_size=100)


@pytest.mark.slow
def test_small_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = load("digits")
    embedder = train_embedder(data.train_images, EMBEDDER)
    monkeypatch.setattr(table, "cached_embedder", lambda *_, **__: embedder)

    def run():
        settings = {"radii": (0.1, 1.0), "epsilons": (1.0, 10.0), "seed": 0, "config": DECODER}
        return table.run(data, SETTINGS["mnist"], tmp_path, report=silent, **settings)

    found = run()
    close, far = found["released"]["10"]["0.1"], found["released"]["1"]["1"]
    bare, nothing = found[table.BARE], found[table.NOTHING]
    assert bare["l2"] <= close["l2"] + 0.005
    assert close["l2"] < far["l2"] - 0.01
    assert far["l2"] < nothing["l2"] + 0.01
    assert close["ssim"] > far["ssim"] + 0.1
    # R / epsilon alone counts
    assert found["released"]["1"]["0.1"] == found["released"]["10"]["1"]
    # a label drawn nearly evenly says little, one drawn nearly surely as much as a class says
    unsure, sure = (found[RESPONSE][epsilon] for epsilon in ("1", "10"))
    assert sure["l2"] < unsure["l2"] - 0.005
    assert nothing["l2"] - 0.01 < unsure["l2"] < nothing["l2"] + 0.005
    monkeypatch.setattr(table, "cached_embedder", None)
    assert run() == found
