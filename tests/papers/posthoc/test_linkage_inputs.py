"""Data sets of the linkage table: which rows serve for what, and what is learned on which."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from papers.posthoc import linkage_inputs
from papers.posthoc.linkage_inputs import SOURCES, classifier, pictures
from reticent.datasets import Dataset
from reticent.training.parts import PublicPCA
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


@pytest.mark.usefixtures("short")
def test_features_are_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linkage_inputs, "load_cifar10", lambda: drawn(0))
    first = pictures(tmp_path, silent)
    monkeypatch.setattr(linkage_inputs, "load_cifar10", None)
    again = pictures(tmp_path, silent)
    for name in ("public", "public_y", "asked", "asked_y", "held", "held_y"):
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))


@pytest.mark.parametrize("classes", [2, 3])
def test_a_classifier_has_one_logit_for_each_label(classes: int) -> None:
    random = np.random.default_rng(0)
    labels = np.arange(300) % classes
    rows = np.eye(classes, 6)[labels] + 0.2 * random.normal(size=(300, 6))
    layer = classifier(rows, labels, strength=10.0)
    with torch.no_grad():
        logits = layer(torch.from_numpy(rows).float()).numpy()
    assert logits.shape == (300, classes)
    assert (logits.argmax(axis=1) == labels).mean() > 0.95
    # its gradient vanishes: the penalised likelihood that it maximises is scikit-learn's
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    slope = (np.eye(classes)[labels] - shares).sum(axis=0)
    np.testing.assert_allclose(slope, 0.0, atol=0.05)  # the intercept bears no penalty


@pytest.mark.parametrize(("data", "values"), [("reviews", 1), ("cifar10", 9)])
def test_what_is_released_of_a_data_set(data: str, values: int) -> None:
    vectors = SOURCES[data].vectors
    assert len(vectors) == 7
    assert [part.outputs for part in vectors.values() if isinstance(part, PublicPCA)] == [4, 16, 32]
    word = "value" if values == 1 else "values"
    assert next(iter(vectors)) == f"class discriminants, {values} {word}"
    assert list(vectors)[-1].endswith(f" {min(values, 4)} {word}")


def test_reviews_are_public_rows_and_held_out_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    from reticent.datasets import Table

    rows = np.arange(20.0)[:, None]
    table = Table(
        "imdb", ("e0",), rows, np.arange(20) % 2, -rows, np.zeros(20, int), ("n", "p"), ""
    )
    monkeypatch.setattr(linkage_inputs, "load_imdb", lambda: table)
    monkeypatch.setattr(linkage_inputs, "_PUBLIC_REVIEWS", 15)
    found = SOURCES["reviews"].load(Path("not read"), silent)
    np.testing.assert_array_equal(found.public, rows[:15])
    assert found.asked.shape == (0, 1)
    np.testing.assert_array_equal(found.held, -rows)
