"""MNIST and Fashion-MNIST from files, and what is said when they are not there."""

from __future__ import annotations

import os
from urllib.error import URLError

import numpy as np
import pytest

from reticent.core.errors import DataUnavailable
from reticent.datasets import DATA_VARIABLE, load_fashion, load_mnist

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


def test_failed_download_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(*_: object, **__: object) -> None:
        raise URLError("no network")

    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", offline)
    with pytest.raises(DataUnavailable, match=f"{DATA_VARIABLE}.*download failed"):
        load_fashion()


def test_a_download_of_another_shape_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Bunch:
        data = np.zeros((10, 784))
        target = np.zeros(10)

    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda *_, **__: Bunch())
    with pytest.raises(DataUnavailable, match="shape="):
        load_mnist()
