"""MNIST and Fashion-MNIST from files, and what is said when they are not there."""

from __future__ import annotations

import os

import numpy as np
import pytest

from papers.datasets import load_fashion, load_mnist
from papers.datasets.files import DATA_VARIABLE

needs_files = pytest.mark.skipif(
    not os.environ.get(DATA_VARIABLE), reason=f"{DATA_VARIABLE} is not set"
)


@pytest.mark.data
@needs_files
def test_mnist_files() -> None:
    data = load_mnist()
    assert data.train_images.shape == (60000, 28, 28)
    assert data.test_labels[:5].tolist() == [7, 2, 1, 0, 4]
    assert data.train_images.max() == 1.0


@pytest.mark.data
@needs_files
def test_fashion_files() -> None:
    data = load_fashion()
    assert data.test_images.shape == (10000, 28, 28)
    assert np.bincount(data.train_labels).tolist() == [6000] * 10
    assert data.class_names[data.test_labels[0]] == "ankle boot"
