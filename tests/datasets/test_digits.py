"""Digits: nothing to download, fixed held-out part."""

from __future__ import annotations

import numpy as np

from reticent.datasets import load_digits


def test_split_is_fixed_and_complete() -> None:
    data, again = load_digits(), load_digits()
    assert data.image_shape == (8, 8)
    assert data.classes == 10
    np.testing.assert_array_equal(data.test_labels, again.test_labels)
    assert len(data.train_labels) + len(data.test_labels) == 1797
    # Every class is on both sides.
    assert (np.bincount(data.train_labels) > 100).all()
    assert (np.bincount(data.test_labels) > 20).all()
