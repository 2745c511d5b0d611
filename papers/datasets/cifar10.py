"""CIFAR-10, the part of it that fits into one file: the first 10,000 training pictures and the
whole test set.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from papers.datasets.files import DATA_VARIABLE, data_folder, opened_npz
from reticent.core.errors import DataUnavailable
from reticent.datasets.dataset import Dataset

FILE = "cifar10_20k_d2.npz"
_ROWS = 10000
_FIRST_TEST_LABELS = (3, 8, 8, 0)
_TRAIN_COUNTS = (1005, 974, 1032, 1016, 999, 937, 1030, 1001, 1025, 981)


def load_cifar10(folder: str | Path | None = None) -> Dataset:
    """Return small colour photographs in ten classes: 10,000 for training (batch 1 of 5) and the
    official 10,000 held out.

    Each picture is three planes of 32 x 32, red, green and blue, one below the other, of shape
    (96, 32). Reshape a row to (3, 32, 32) for a network. The values stand in that order.

    Args:
        folder: folder with ``cifar10_20k_d2.npz``. The default is the one that ``RETICENT_DATA``
            names.

    Raises:
        DataUnavailable: the file is missing or damaged.
    """
    place = data_folder(folder)
    if place is None or not (place / FILE).is_file():
        where = "no folder was named" if place is None else f"none in {str(place)!r}"
        raise DataUnavailable(
            f"cifar10: expected {FILE} ({where}); set {DATA_VARIABLE} to the folder that holds it"
        )
    names = ("train_d2", "train_y", "test_d2", "test_y")
    with opened_npz(place / FILE, holds=", ".join(names)) as stored:
        train_images, train_labels, test_images, test_labels = (stored[name] for name in names)
    counts = tuple(np.bincount(train_labels, minlength=10).tolist())
    if (
        train_images.shape != (_ROWS, 3, 32, 32)
        or test_images.shape != (_ROWS, 3, 32, 32)
        or counts != _TRAIN_COUNTS
    ):
        raise DataUnavailable(
            f"{FILE}: expected 2 x {_ROWS} pictures with the known class counts; fetch the "
            "file again"
        )
    if tuple(test_labels[:4].tolist()) != _FIRST_TEST_LABELS:
        raise DataUnavailable(
            f"{FILE}: expected the official order of the test set; fetch the file again"
        )
    return Dataset(
        name="cifar10",
        train_images=_pictures(train_images),
        train_labels=train_labels.astype(np.int64),
        test_images=_pictures(test_images),
        test_labels=test_labels.astype(np.int64),
        class_names=(
            "airplane",
            "automobile",
            "bird",
            "cat",
            "deer",
            "dog",
            "frog",
            "horse",
            "ship",
            "truck",
        ),
        origin="CIFAR-10 (Krizhevsky 2009), batch 1 and the test set",
    )


def _pictures(coded: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """Undo the differences, along both axes of a plane, then of red and blue to green. Exact in
    bytes.
    """
    planes = coded.cumsum(axis=2, dtype=np.uint8).cumsum(axis=3, dtype=np.uint8)
    planes[:, 0] += planes[:, 1]
    planes[:, 2] += planes[:, 1]
    return planes.reshape(len(planes), 96, 32).astype(np.float32) / np.float32(255)
