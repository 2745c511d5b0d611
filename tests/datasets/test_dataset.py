"""A data set checks itself, and its tuning split never touches the held-out part."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from reticent.core.errors import InvalidInput
from reticent.datasets import Dataset


def small() -> Dataset:
    images = np.linspace(0, 1, 10 * 4, dtype=np.float32).reshape(10, 2, 2)
    labels = np.arange(10, dtype=np.int64) % 2
    return Dataset("small", images, labels, images[:4] * 0, labels[:4], ("a", "b"), "made up")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_images": np.zeros((10, 4), np.float32)}, "train_images"),
        ({"train_images": np.zeros((10, 2, 2))}, "float64"),
        ({"train_images": np.full((10, 2, 2), 2, np.float32)}, r"\[0, 1\]"),
        ({"train_labels": np.zeros(9, np.int64)}, "train_labels"),
        ({"test_labels": np.full(4, 2)}, "0..1"),
        ({"test_images": np.zeros((4, 2, 3), np.float32)}, r"\(2, 2\)"),
    ],
)
def test_parts_that_do_not_fit_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        replace(small(), **changes)
