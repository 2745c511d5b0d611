"""CIFAR-10: the stored differences decode, planes stand one below the other, damage is refused."""

from __future__ import annotations

import numpy as np

from papers.datasets.cifar10 import _pictures


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
