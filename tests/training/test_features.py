"""Feature maps: every row by itself, and what they were made from."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from skimage.feature import hog
from torch import nn

from reticent.training.features import (
    FeatureMap,
    HogFeatures,
    IdentityFeatures,
    ModuleFeatures,
    Origin,
    upright,
)

PICTURES = np.random.default_rng(0).random((9, 64))
NET = nn.Sequential(nn.Linear(64, 16), nn.GELU(), nn.BatchNorm1d(16), nn.Dropout(0.5))


def _maps() -> list[FeatureMap]:
    torch.manual_seed(0)
    plain = HogFeatures(image_shape=(1, 8, 8), cell=4, orientations=9, upright=False)
    return [
        IdentityFeatures(),
        plain,
        HogFeatures(image_shape=(1, 8, 8), cell=4, orientations=9, upright=True),
        ModuleFeatures(NET, (64,), Origin.PUBLIC),
        ModuleFeatures(NET, (64,), Origin.RELEASED),
    ]


@pytest.mark.parametrize("number", range(5))
def test_a_row_does_not_depend_on_its_batch(number: int) -> None:
    features = _maps()[number]
    whole = features.features(PICTURES)
    for rows in (slice(3, 4), slice(2, 9), slice(None, None, -1)):
        assert (features.features(PICTURES[rows]) == whole[rows]).all()


def test_maps_say_what_they_were_made_from() -> None:
    assert [features.origin for features in _maps()] == [
        Origin.FIXED,
        Origin.FIXED,
        Origin.FIXED,
        Origin.PUBLIC,
        Origin.RELEASED,
    ]


def test_gradients_are_those_of_the_library_plane_by_plane() -> None:
    planes = np.random.default_rng(1).random((2, 2, 16, 16))
    features = HogFeatures(image_shape=(2, 16, 16), cell=4, orientations=9, upright=False).features(
        planes.reshape(2, -1)
    )
    for row in range(2):
        expected = [
            hog(plane, orientations=9, pixels_per_cell=(4, 4), cells_per_block=(2, 2))
            for plane in planes[row]
        ]
        np.testing.assert_array_equal(features[row], np.concatenate(expected))


def test_upright_undoes_a_shear() -> None:
    rows, columns = np.mgrid[:28, :28]
    stroke = (np.abs(columns - 13.5) < 2) & (np.abs(rows - 13.5) < 9)
    slanted = (np.abs(columns - 13.5 - 0.5 * (rows - 13.5)) < 2) & (np.abs(rows - 13.5) < 9)
    straightened = upright(slanted.astype(float))
    assert (
        np.abs(straightened - stroke).mean() < 0.03 < np.abs(slanted.astype(float) - stroke).mean()
    )
    empty, single = np.zeros((8, 8)), np.eye(1, 64, 20).reshape(8, 8)
    assert (upright(empty) == empty).all()
    assert (upright(single) == single).all()
