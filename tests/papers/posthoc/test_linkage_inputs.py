"""Data sets of the linkage table: which rows serve for what, and what is learned on which."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from papers.posthoc import linkage_inputs
from papers.posthoc.linkage_inputs import pictures
from reticent.datasets import Dataset
from reticent.training.progress import silent
from reticent.training.public_features import PatchFeatures


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
