"""UTKFace in 64 x 64 grey with the gender task, split so that no face is on both sides."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from papers.datasets.files import needed_file, opened_npz
from reticent.core.errors import DataUnavailable
from reticent.datasets.dataset import Dataset

FILE = "utkface_grey64_d2.npz"
_SHAPE = (23704, 64, 64)
_GENDER_COUNTS = (12390, 11314)


def load_utkface(folder: str | Path | None = None) -> Dataset:
    """Return grey faces of 64 x 64 pixels labelled male (0) or female (1).

    Some faces repeat, and equal time stamps are the hint. Therefore the last fifth of the permuted
    distinct stamps is held out, rather than a fifth of the rows.

    Args:
        folder: folder with ``utkface_grey64_d2.npz``. The default is the one that ``RETICENT_DATA``
            names.

    Returns:
        About four fifths of the 23,704 pictures for training, the rest held out. Rows are shuffled.

    Raises:
        DataUnavailable: the file is missing, damaged, or holds other arrays than expected.
    """
    about = (
        "it cannot be downloaded (non-commercial research licence): build it from the aligned "
        "and cropped UTKFace pictures as "
        "docs/training.md says"
    )
    with opened_npz(
        needed_file(folder, FILE, about=about), holds="X_d2, gender and stamp"
    ) as stored:
        images, gender, stamp = _decode(stored["X_d2"]), stored["gender"], stored["stamp"]
    counts = (int((gender == 0).sum()), int((gender == 1).sum()))
    if images.shape != _SHAPE or counts != _GENDER_COUNTS or stamp.shape != gender.shape:
        raise DataUnavailable(
            f"{FILE}: expected pictures of shape={_SHAPE} with {_GENDER_COUNTS} labels, got "
            f"shape={images.shape} with {counts}"
        )
    stamps = np.unique(stamp)
    order = np.random.RandomState(0).permutation(len(stamps))
    held_out = np.isin(stamp, stamps[order[len(stamps) - len(stamps) // 5 :]])
    shuffled = np.random.RandomState(1).permutation(len(images))  # stored sorted by age
    train, test = shuffled[~held_out[shuffled]], shuffled[held_out[shuffled]]
    scaled = images.astype(np.float32) / np.float32(255)
    labels = gender.astype(np.int64)
    return Dataset(
        name="utkface",
        train_images=scaled[train],
        train_labels=labels[train],
        test_images=scaled[test],
        test_labels=labels[test],
        class_names=("male", "female"),
        origin="UTKFace, aligned and cropped, grey 64 x 64 (non-commercial research only)",
    )


def _decode(differences: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return pictures from their two-way differences modulo 256."""
    rows: npt.NDArray[np.uint8] = differences.cumsum(1, dtype=np.uint8)
    return rows.cumsum(2, dtype=np.uint8)
