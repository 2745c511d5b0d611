"""Patch features and principal components of public rows: maps, transformers, descriptions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from reticent.core.errors import InvalidInput
from reticent.training.public_features import PatchFeatures, PublicPCA, public_map

PICTURES = np.random.default_rng(0).random((60, 3, 8, 9))
SMALL: dict[str, Any] = {"image_shape": (3, 8, 9), "filters": 6, "patch": 3, "pool": 2}


@pytest.fixture(scope="module")
def patches() -> PatchFeatures:
    return PatchFeatures(**SMALL).fit(PICTURES)


def test_features_are_those_of_the_definition(patches: PatchFeatures) -> None:
    """By loops over places and cells, in double precision."""
    picture = PICTURES[0] / patches.largest_
    grid = np.zeros((6, 7, 6))
    for i in range(6):
        for j in range(7):
            patch = picture[:, i : i + 3, j : j + 3].ravel()
            patch = (patch - patch.mean()) / np.sqrt(patch.var() + 0.02)
            match = patch @ patches.filters_.astype(float) - patches.offsets_.astype(float)
            grid[i, j] = np.maximum(match, 0)
    rows, columns = [round(i * 6 / 2) for i in range(3)], [round(i * 7 / 2) for i in range(3)]
    expected = [
        np.sqrt(grid[rows[a] : rows[a + 1], columns[b] : columns[b + 1]].mean(axis=(0, 1)))
        for a in range(2)
        for b in range(2)
    ]
    assert np.allclose(patches.features(PICTURES[:1])[0], np.concatenate(expected), atol=1e-4)


def test_a_picture_has_the_same_features_alone(patches: PatchFeatures) -> None:
    chain = PublicPCA(components=5, whitening=0.5, of=patches).fit(PICTURES)
    for features in (patches, chain):
        together = features.transform(PICTURES)
        alone = np.concatenate([features.transform(picture[None]) for picture in PICTURES])
        assert np.array_equal(together, alone)
        flat = features.features(PICTURES.reshape(60, -1))
        assert np.array_equal(together, flat)


def test_a_description_gives_the_same_map_back(patches: PatchFeatures) -> None:
    chain = PublicPCA(components=4, of=patches).fit(PICTURES)
    for features in (patches, chain, PublicPCA(components=4, of=chain).fit(PICTURES)):
        again = public_map(*features.describe())
        assert np.array_equal(again.features(PICTURES[:5]), features.features(PICTURES[:5]))
        assert again.name == features.name


def test_a_map_of_ones_own_is_not_described() -> None:
    class Own:
        name = "own"

        def features(self, inputs: Any) -> np.ndarray:
            return np.asarray(inputs)[:, :10]

    chain = PublicPCA(components=2, of=Own()).fit(PICTURES.reshape(60, -1))
    with pytest.raises(InvalidInput, match="a bundle can hold"):
        chain.describe()
