"""Histograms of oriented gradients, with skimage's as the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from skimage.feature import hog

from reticent.training.hog import oriented_gradients

SHAPES = [
    (8, 8, 4, 9),
    (28, 28, 7, 9),
    (28, 28, 4, 8),
    (11, 9, 4, 7),
    (32, 30, 5, 1),
    (4, 40, 2, 12),
    (6, 6, 1, 3),
]


def _skimage(plane: np.ndarray, orientations: int, cell: int) -> np.ndarray:
    return np.asarray(
        hog(plane, orientations=orientations, pixels_per_cell=(cell, cell), cells_per_block=(2, 2))
    )


def _pictures(height: int, width: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(height * width)
    return {
        "uniform": rng.random((6, height, width)),
        "signed": rng.normal(0, 100, (6, height, width)),
        # Many gradients on the edges between bins: multiples of 45 degrees, and of one direction.
        "black and white": rng.integers(0, 2, (6, height, width)).astype(np.float64),
        "grey levels": rng.integers(0, 17, (6, height, width)).astype(np.float64),
        "constant": np.full((2, height, width), 3.25),
        "faint": 1e-7 * rng.random((3, height, width)),
        "bright": 1e30 * rng.random((3, height, width)),
        "one pixel": np.eye(height * width)[:4].reshape(4, height, width),
    }


@pytest.mark.parametrize(("height", "width", "cell", "orientations"), SHAPES)
def test_features_are_those_of_skimage(
    height: int, width: int, cell: int, orientations: int
) -> None:
    for name, planes in _pictures(height, width).items():
        expected = np.stack([_skimage(plane, orientations, cell) for plane in planes])
        found = oriented_gradients(planes, orientations=orientations, cell=cell)
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found, expected, err_msg=name)


def test_a_plane_is_the_same_in_every_batch() -> None:
    planes = np.random.default_rng(1).normal(size=(7, 28, 28))
    planes[2] *= 1e250
    whole = oriented_gradients(planes, orientations=9, cell=7)
    for rows in (slice(2, 3), slice(1, 6), slice(None, None, -1)):
        np.testing.assert_array_equal(
            oriented_gradients(planes[rows], orientations=9, cell=7), whole[rows]
        )


@pytest.mark.parametrize("size", [1e100, 1e200, 1.7976931348623157e308])
def test_the_brightest_planes_have_finite_features(size: float) -> None:
    """Beyond what float32 holds, features are those of the same plane at an ordinary brightness,
    to float32's digits.
    """
    planes = np.random.default_rng(2).uniform(-1, 1, (3, 12, 12))
    found = oriented_gradients(size * planes, orientations=9, cell=3)
    np.testing.assert_allclose(
        found, oriented_gradients(1e20 * planes, orientations=9, cell=3), atol=1e-6
    )
    extremes = np.where(planes > 0, size, -size)
    assert np.all(np.isfinite(oriented_gradients(extremes, orientations=9, cell=3)))
