"""MNIST and Fashion-MNIST: local idx files first, the OpenML copy otherwise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from papers.datasets.files import DATA_VARIABLE, data_folder, read_idx
from reticent.core.errors import DataUnavailable
from reticent.datasets.dataset import Dataset

Bytes = npt.NDArray[np.uint8]

_TRAIN_ROWS = 60000
_ROWS = 70000
_FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)
_SHA256 = {
    "mnist": (
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
    "fashion": (
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
}
_OPENML = {"mnist": "mnist_784", "fashion": "Fashion-MNIST"}
_CLASS_NAMES = {
    "mnist": tuple(str(digit) for digit in range(10)),
    "fashion": (
        "t-shirt",
        "trouser",
        "pullover",
        "dress",
        "coat",
        "sandal",
        "shirt",
        "sneaker",
        "bag",
        "ankle boot",
    ),
}
_ORIGIN = {
    "mnist": "MNIST (LeCun, Cortes, Burges; CC BY-SA 3.0)",
    "fashion": "Fashion-MNIST (Zalando Research; MIT)",
}


def load_mnist(folder: str | Path | None = None) -> Dataset:
    """Return handwritten digits, 28 x 28: 60,000 for training and the official 10,000 held out.

    Args:
        folder: folder with ``mnist/*-ubyte.gz``. The default is the one that ``RETICENT_DATA``
            names. Without either the copy on OpenML is downloaded and cached by scikit-learn.

    Raises:
        DataUnavailable: a file is missing or damaged, or the download failed.
    """
    return _load("mnist", folder)


def load_fashion(folder: str | Path | None = None) -> Dataset:
    """Return pictures of clothing, 28 x 28: 60,000 for training and the official 10,000 held out.

    Args:
        folder: folder with ``fashion/*-ubyte.gz``. The default is the one that ``RETICENT_DATA``
            names. Without either the copy on OpenML is downloaded and cached by scikit-learn.

    Raises:
        DataUnavailable: a file is missing or damaged, or the download failed.
    """
    return _load("fashion", folder)


def _load(name: str, folder: str | Path | None) -> Dataset:
    place = data_folder(folder)
    parts = _from_openml(name) if place is None else _from_files(name, place / name)
    train_images, train_labels, test_images, test_labels = parts
    return Dataset(
        name=name,
        train_images=_scaled(train_images),
        train_labels=train_labels.astype(np.int64),
        test_images=_scaled(test_images),
        test_labels=test_labels.astype(np.int64),
        class_names=_CLASS_NAMES[name],
        origin=_ORIGIN[name],
    )


def _from_files(name: str, place: Path) -> tuple[Bytes, Bytes, Bytes, Bytes]:
    missing = [file for file in _FILES if not (place / file).is_file()]
    if missing:
        raise DataUnavailable(
            f"{name}: expected {', '.join(missing)} in {str(place)!r}; copy the files there, "
            f"or unset {DATA_VARIABLE} to download"
        )
    first, second, third, fourth = (
        read_idx(place / file, sha256=digest)
        for file, digest in zip(_FILES, _SHA256[name], strict=True)
    )
    return first, second, third, fourth


def _from_openml(name: str) -> tuple[Bytes, Bytes, Bytes, Bytes]:
    from sklearn.datasets import fetch_openml

    try:
        bunch = fetch_openml(_OPENML[name], version=1, as_frame=False, parser="liac-arff")
    except (OSError, ValueError) as error:
        raise DataUnavailable(
            f"{name}: expected {DATA_VARIABLE} to name a folder with {name}/*-ubyte.gz, or a "
            "network to download "
            f"{_OPENML[name]!r} from OpenML; the download failed with {type(error).__name__}"
        ) from error
    images = np.asarray(bunch.data)
    labels = np.asarray(bunch.target)
    if images.shape != (_ROWS, 784) or labels.shape != (_ROWS,):
        raise DataUnavailable(
            f"{name}: expected {_ROWS} x 784 values from OpenML, got shape={images.shape}; "
            "clear its cache and retry"
        )
    images, labels = images.astype(np.uint8).reshape(_ROWS, 28, 28), labels.astype(np.uint8)
    return images[:_TRAIN_ROWS], labels[:_TRAIN_ROWS], images[_TRAIN_ROWS:], labels[_TRAIN_ROWS:]


def _scaled(images: Bytes) -> npt.NDArray[np.float32]:
    return images.astype(np.float32) / np.float32(255)
