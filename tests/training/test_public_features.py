"""Patch features and principal components of public rows: maps, transformers, descriptions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from reticent.core.errors import InvalidInput, NotFittedYet
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


def test_far_pictures_have_finite_features(patches: PatchFeatures) -> None:
    found = patches.features(np.full((1, 3, 8, 9), 1e300) * np.sign(PICTURES[:1] - 0.5))
    assert np.isfinite(found).all()


def test_mirrored_features_do_not_see_left_from_right() -> None:
    features = PatchFeatures(**SMALL, mirrored=True).fit(PICTURES)
    assert np.allclose(
        features.features(PICTURES[:3]), features.features(PICTURES[:3, :, :, ::-1]), atol=1e-6
    )


def test_filters_find_what_pictures_are_made_of() -> None:
    """Pictures of one edge at random places: a filter matches it, at any place."""
    rng = np.random.default_rng(1)
    pictures = 0.01 * rng.random((200, 1, 12, 12))
    for picture, column in zip(pictures, rng.integers(3, 9, 200), strict=True):
        picture[0, :, column:] += 1.0
    features = PatchFeatures(image_shape=(1, 12, 12), filters=8, patch=4, pool=1).fit(pictures)
    flat = features.features(0.01 * rng.random((20, 1, 12, 12)))
    assert features.features(pictures).max(axis=1).mean() > 1.5 * flat.max(axis=1).mean()


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


def test_maps_are_transformers(patches: PatchFeatures) -> None:
    fresh = clone(patches)
    with pytest.raises(NotFittedYet):
        fresh.transform(PICTURES)
    assert np.array_equal(fresh.fit(PICTURES).filters_, patches.filters_)
    with pytest.raises(InvalidInput, match="values a row"):
        patches.transform(PICTURES[:, :2])
