"""CIFAR-10: the stored differences decode, planes stand one below the other, damage is refused."""

from __future__ import annotations

import os

import numpy as np
import pytest

from reticent.datasets import DATA_VARIABLE, load_cifar10
from reticent.datasets.cifar10 import _pictures

needs_files = pytest.mark.skipif(
    not os.environ.get(DATA_VARIABLE), reason=f"{DATA_VARIABLE} is not set"
)


def test_decode_inverts_the_differences() -> None:
    colours = np.random.default_rng(0).integers(0, 256, size=(3, 3, 32, 32), dtype=np.uint8)
    planes = colours.copy()
    planes[:, 0] -= colours[:, 1]
    planes[:, 2] -= colours[:, 1]
    rows = np.diff(planes, axis=2, prepend=np.zeros((3, 3, 1, 32), np.uint8))
    coded = np.diff(rows, axis=3, prepend=np.zeros((3, 3, 32, 1), np.uint8))
    decoded = _pictures(coded)
    assert decoded.shape == (3, 96, 32)
    np.testing.assert_array_equal(np.rint(decoded * 255).reshape(3, 3, 32, 32), colours)


@pytest.mark.data
@pytest.mark.slow
@needs_files
def test_real_pictures_are_smooth() -> None:
    data = load_cifar10()
    assert data.train_images.shape == data.test_images.shape == (10000, 96, 32)
    # Neighbouring pixels of a decoded photograph are close, which a wrong decode would destroy.
    planes = data.test_images[:200].reshape(200, 3, 32, 32)
    assert np.abs(np.diff(planes, axis=3)).mean() < 0.08
    assert np.abs(np.diff(planes, axis=2)).mean() < 0.08
