"""PneumoniaMNIST: chest X-rays of children in 28 x 28 grey, normal or pneumonia."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from papers.datasets.files import needed_file, opened_npz
from reticent.core.errors import DataUnavailable, UnknownName
from reticent.datasets.dataset import Dataset

FILE = "pneumoniamnist28.npz"
_SICK = {"train": (4708, 3494), "val": (524, 389), "test": (624, 390)}
"""Pictures of each part, and how many of them show pneumonia."""

_PARTS = {"test": "test", "validation": "val"}


def load_pneumonia(folder: str | Path | None = None, *, held_out: str = "test") -> Dataset:
    """Return chest X-rays labelled normal (0) or pneumonia (1): 4,708 for training, an official
    part held out.

    Args:
        folder: folder with ``pneumoniamnist28.npz``. The default is the one that ``RETICENT_DATA``
            names.
        held_out: "test" (624 pictures, for final figures only) or "validation" (524 pictures, for
            tuning).

    Raises:
        DataUnavailable: the file is missing, damaged, or holds other arrays than expected.
        UnknownName: ``held_out`` is neither.
    """
    if held_out not in _PARTS:
        raise UnknownName(f"held_out={held_out!r}: expected one of {', '.join(_PARTS)}")
    path = needed_file(
        folder, FILE, about="it is PneumoniaMNIST of MedMNIST v2, 28 x 28 (CC BY 4.0)"
    )
    with opened_npz(path, holds="pictures and labels") as stored:
        arrays = {name: (stored[f"{name}_images"], stored[f"{name}_labels"]) for name in _SICK}
    for name, (rows, sick) in _SICK.items():
        images, labels = arrays[name]
        if (
            images.shape != (rows, 28, 28)
            or labels.shape != (rows, 1)
            or int((labels == 1).sum()) != sick
        ):
            raise DataUnavailable(
                f"{FILE}: expected {rows} pictures in the {name} part, {sick} of them labelled "
                f"1, got shape={images.shape} with "
                f"{int((labels == 1).sum())}"
            )
    train, kept = arrays["train"], arrays[_PARTS[held_out]]
    return Dataset(
        name="pneumonia",
        train_images=train[0].astype(np.float32) / np.float32(255),
        train_labels=train[1][:, 0].astype(np.int64),
        test_images=kept[0].astype(np.float32) / np.float32(255),
        test_labels=kept[1][:, 0].astype(np.int64),
        class_names=("normal", "pneumonia"),
        origin="PneumoniaMNIST, MedMNIST v2 (Yang et al. 2021; Kermany et al. 2018; CC BY 4.0)",
    )
