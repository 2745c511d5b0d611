"""Scikit-learn's digits: 1,797 pictures of 8 x 8 pixels that come with the package, so nothing is
downloaded.
"""

from __future__ import annotations

import numpy as np

from reticent.datasets.dataset import Dataset
from reticent.datasets.table import last_fifth_held_out


def load_digits() -> Dataset:
    """Return handwritten digits, 8 x 8, with a fixed fifth of the rows held out.

    The rows held out are the last fifth of ``RandomState(0).permutation(1797)``, because the
    package defines no test part, and its own order groups pictures by writer.

    Returns:
        1,438 training and 359 held-out pictures in ten classes.

    Example:
        >>> data = load_digits()
        >>> data.train_images.shape, data.test_images.shape
        ((1438, 8, 8), (359, 8, 8))
    """
    from sklearn.datasets import load_digits as sklearn_digits

    bunch = sklearn_digits()
    images = (np.asarray(bunch.images, dtype=np.float32) / np.float32(16)).astype(np.float32)
    labels = np.asarray(bunch.target, dtype=np.int64)
    train, test = last_fifth_held_out(len(images))
    return Dataset(
        name="digits",
        train_images=images[train],
        train_labels=labels[train],
        test_images=images[test],
        test_labels=labels[test],
        class_names=tuple(str(digit) for digit in range(10)),
        origin="scikit-learn load_digits (UCI Optical Recognition of Handwritten Digits, CC BY "
        "4.0)",
    )
