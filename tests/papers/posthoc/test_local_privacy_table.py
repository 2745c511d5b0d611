"""The comparison with local privacy on digits: scales by hand, every row, cached cells."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from papers.datasets import load
from papers.posthoc import local_privacy_table as table
from papers.posthoc.settings import SETTINGS
from reticent.demos.posthoc import RESPONSE, response_accuracy
from reticent.training.embedder import EmbedderConfig, train_embedder
from reticent.training.progress import silent

EMBEDDER = EmbedderConfig(
    image_shape=(8, 8), latent_dimension=3, beta=0.4, epochs=12, batch_size=64, width=64
)


def test_noise_hides_the_whole_cube() -> None:
    random = np.random.default_rng(0)
    points = table.in_cube(random.normal(size=(500, 3)) * [1.0, 5.0, 0.1], np.full((2, 3), 99.0))
    assert points.train.min() == 0.0
    assert points.train.max() == 1.0
    assert (points.test == 1.0).all()
    assert points.scale("k-norm-linf", 2.0) == 0.5
    assert points.scale("laplace", 2.0) == 1.5  # l1 diameter of the cube is 3


def test_small_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = load("digits")
    embedder = train_embedder(data.train_images, EMBEDDER)
    monkeypatch.setattr(table, "cached_embedder", lambda *_, **__: embedder)
    settings = replace(SETTINGS["mnist"], radius=0.2)

    def run():
        return table.run(data, settings, tmp_path, epsilons=(1.0, math.inf), seed=0, report=silent)

    found = run()
    assert set(found) == {"picture", "embedding", "live coordinates", RESPONSE, table.WITHIN}
    bare = found["picture"]["inf"]["accuracy"]
    assert bare > 0.7
    assert found["picture"]["1"]["accuracy"] < 0.2  # 64 pixels of noise
    assert found[table.WITHIN]["1"]["accuracy"] > found["embedding"]["1"]["accuracy"]
    assert found[RESPONSE]["1"]["accuracy"] == response_accuracy(bare, epsilon=1.0, classes=10)
    monkeypatch.setattr(table, "cached_embedder", None)
    assert run() == found
    text = table.markdown("mnist", 0.2, [found], command="python -m some")
    assert "Printed by `python -m some`." in text
    assert f"| picture | {found['picture']['1']['accuracy']:.3f} | {bare:.3f} |" in text
    assert "| LDP-Embedding | 0.107 | 0.132 |" in text or "| LDP-Embedding | 0.108 |" in text
