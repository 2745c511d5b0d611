"""The form of every data set once it is loaded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Integers
from reticent.core.errors import InvalidInput
from reticent.datasets.table import check_labels

Images = npt.NDArray[np.float32]
Rows = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Dataset:
    """Pictures with labels, in a training part and a held-out part.

    The held-out part is the official one where there is one. It is for final figures only. Every
    choice (a mechanism, a width, a number of epochs) is made on rows of the training part.

    Attributes:
        name: the name it was loaded by.
        train_images: shape (n, height, width), float32 in [0, 1].
        train_labels: shape (n,), int64 in 0..classes - 1.
        test_images: shape (k, height, width), float32 in [0, 1].
        test_labels: shape (k,), int64.
        class_names: one word per class.
        origin: its source and licence.

    Raises:
        InvalidInput: shapes, types or ranges do not fit together.
    """

    name: str
    train_images: Images
    train_labels: Integers
    test_images: Images
    test_labels: Integers
    class_names: tuple[str, ...]
    origin: str

    def __post_init__(self) -> None:
        for part in ("train", "test"):
            images: Images = getattr(self, f"{part}_images")
            labels: Integers = getattr(self, f"{part}_labels")
            if images.ndim != 3 or images.dtype != np.float32 or len(images) == 0:
                raise InvalidInput(
                    f"{part}_images: expected float32 of shape (n, height, width), got "
                    f"dtype={images.dtype} shape={images.shape}"
                )
            if images.min() < 0 or images.max() > 1:
                raise InvalidInput(f"{part}_images: expected values in [0, 1]")
            check_labels(labels, rows=len(images), classes=self.classes, name=f"{part}_labels")
        if self.train_images.shape[1:] != self.test_images.shape[1:]:
            raise InvalidInput(
                f"test_images: expected pictures of shape {self.image_shape} as in training, "
                f"got {self.test_images.shape[1:]}"
            )

    @property
    def train_rows(self) -> Rows:
        """The training pictures one after another, shape (n, height * width), float64 in [0, 1]."""
        return _rows(self.train_images)

    @property
    def test_rows(self) -> Rows:
        """The held-out pictures one after another, shape (k, height * width), float64 in [0, 1]."""
        return _rows(self.test_images)

    @property
    def image_shape(self) -> tuple[int, int]:
        """Height and width in pixels."""
        return (int(self.train_images.shape[1]), int(self.train_images.shape[2]))

    @property
    def classes(self) -> int:
        """The number of classes."""
        return len(self.class_names)


def _rows(images: Images) -> Rows:
    return images.reshape(len(images), -1).astype(np.float64)
