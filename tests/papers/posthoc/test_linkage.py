"""The linkage table end to end on a small table of unit vectors, and which rows serve for what."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from papers.posthoc import linkage, linkage_inputs
from papers.posthoc.linkage_inputs import SOURCES, Inputs, Source, pictures
from reticent.datasets import Dataset
from reticent.systems import Calibration
from reticent.training.parts import NoiseAware, PublicDiscriminants, PublicPCA
from reticent.training.progress import silent
from reticent.training.public_features import PatchFeatures

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


def drawn(seed: int) -> Dataset:
    """Twelve public pictures that no seed changes, and six private ones and five held-out ones."""
    random, same = np.random.default_rng(seed), np.random.default_rng(99)
    train = np.concatenate([same.random((12, 96, 32)), random.random((6, 96, 32))])
    test = random.random((5, 96, 32))
    labels = np.arange(18) % 10
    return Dataset(
        "cifar10",
        train.astype(np.float32),
        labels,
        test.astype(np.float32),
        labels[:5],
        tuple("abcdefghij"),
        "made",
    )


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few filters, components and public pictures."""

    def patches(data: str) -> PatchFeatures:
        assert data == "cifar10"
        return PatchFeatures(image_shape=(3, 32, 32), filters=4, patch=6, pool=2)

    monkeypatch.setattr(linkage_inputs, "patch_features", patches)
    monkeypatch.setattr(linkage_inputs, "COMPONENTS", 5)
    monkeypatch.setattr(linkage_inputs, "_PUBLIC_PICTURES", 12)
    monkeypatch.setattr(linkage_inputs, "_BLOCK", 4)


@pytest.mark.usefixtures("short")
def test_features_of_pictures_are_learned_on_the_public_half_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for seed in (0, 1):
        monkeypatch.setattr(linkage_inputs, "load_cifar10", lambda seed=seed: drawn(seed))
        found.append(pictures(tmp_path / str(seed), silent))
    one, other = found
    assert [part.shape for part in (one.public, one.asked, one.held)] == [(12, 5), (6, 5), (5, 5)]
    np.testing.assert_array_equal(one.public, other.public)  # other private rows change nothing
    assert (one.asked != other.asked).any()
    assert (one.held != other.held).any()
    np.testing.assert_array_equal(one.asked_y, np.arange(12, 18) % 10)
    # one picture at a time: the same features as of all at once
    whole = drawn(0)
    patches = linkage_inputs.patch_features("cifar10").fit(whole.train_rows[:12])
    reduced = linkage_inputs.PublicComponents(components=5, of=patches).fit(whole.train_rows[:12])
    np.testing.assert_array_equal(reduced.features(whole.test_rows), one.held)
