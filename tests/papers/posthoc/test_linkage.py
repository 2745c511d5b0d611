"""The linkage table end to end on a small table of unit vectors."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from papers.posthoc import linkage
from papers.posthoc.linkage_inputs import SOURCES, Inputs, Source
from reticent.systems import Calibration
from reticent.training.parts import NoiseAware, PublicDiscriminants, PublicPCA
from reticent.training.progress import silent

COUNTS = {"public": 250, "asked": 150, "held": 150}


def small(classes: int, *, asked: bool) -> Inputs:
    """Unit vectors of 24 numbers around as many directions as there are classes."""
    random = np.random.default_rng(0)
    parts: dict[str, np.ndarray] = {}
    for name, rows in COUNTS.items():
        count = rows if asked or name != "asked" else 0
        labels = random.integers(0, classes, count)
        points = random.normal(size=(count, 24)) + 6.0 * np.eye(classes, 24)[labels]
        parts[name] = points / np.linalg.norm(points, axis=1, keepdims=True)
        parts[f"{name}_y"] = labels
    return Inputs(**parts)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three vectors, quickly trained."""
    network = NoiseAware(outputs=2, hidden=(8,), epochs=2)
    vectors = {
        "class discriminants": PublicDiscriminants(),
        "principal components, 4 values": PublicPCA(outputs=4),
        "network": network,
    }
    monkeypatch.setattr(Source, "vectors", property(lambda source: vectors))


@pytest.mark.usefixtures("few")
@pytest.mark.slow
@pytest.mark.parametrize("data", [pytest.param("reviews", marks=pytest.mark.soak), "cifar10"])
def test_small_table(data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pictures = data == "cifar10"
    source = replace(SOURCES[data], classes=3 if pictures else 2)
    inputs = small(source.classes, asked=pictures)
    found = linkage.run(
        inputs, source, tmp_path, epsilons=[8.0], seed=0, trials=1_000, report=silent
    )
    near, far = (found[rule] for rule in source.rules.values())
    assert near["radius"] < far["radius"]  # the nearest row, then the tenth nearest
    labels = linkage.labels_of(source)
    names = {*labels, *source.vectors, linkage.AUTO}
    for cells in (near["by epsilon"]["8"], far["by epsilon"]["8"]):
        assert set(cells) == names
        for name, cell in cells.items():
            assert cell["exceeded"] == 0.0
            assert 0.2 < cell["accuracy"] <= 1.0
            assert len(cell["named"]) == len(cell["caps"]) == len(linkage.ANSWERS)
            # a second server learns from answers about private rows, where there are any
            assert ("taught" in cell) == (pictures and name not in labels)
        chosen = cells[linkage.AUTO]["released"]
        assert cells[chosen]["score"] == max(cells[name]["score"] for name in source.vectors)
        assert cells[linkage.AUTO]["accuracy"] == cells[chosen]["accuracy"]
    # the response does not depend on the radius, and its mechanism is the one that was asked for
    response = next(iter(labels))
    assert near["by epsilon"]["8"][response]["released"] == "response"
    assert math.isclose(
        near["by epsilon"]["8"][response]["accuracy"], far["by epsilon"]["8"][response]["accuracy"]
    )
    # a second run reads every cell
    monkeypatch.setattr(linkage, "attack_fitted", None)
    again = linkage.run(inputs, source, tmp_path, epsilons=[8.0], seed=0, report=silent)
    assert again == found


def test_a_server_learns_private_answers_it_has_labels_of() -> None:
    """Answers whose labels are shuffled teach nothing, those with their own nearly all."""
    inputs = small(3, asked=True)
    system = linkage.PosthocEncoder(
        epsilon=400.0,
        delta=0.0,
        radius=0.1,
        input_norm="l2",
        embedder="identity",
        obfuscator="discriminants",
        calibration=Calibration(path="global"),
        random_state=0,
    ).fit(inputs.public, inputs.public_y)
    assert linkage._read(system, inputs, 0)["taught"] > 0.85
    shuffled = np.random.default_rng(0).permutation(inputs.asked_y)
    assert linkage._read(system, replace(inputs, asked_y=shuffled), 0)["taught"] < 0.7
