"""PneumoniaMNIST: official parts, and files that are not the expected one are refused."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from reticent.core.errors import DataUnavailable, UnknownName
from reticent.datasets import DATA_VARIABLE
from reticent.datasets.pneumonia import FILE, load_pneumonia

needs_files = pytest.mark.skipif(
    not os.environ.get(DATA_VARIABLE), reason=f"{DATA_VARIABLE} is not set"
)


@pytest.mark.data
@needs_files
def test_official_parts() -> None:
    final, tuning = load_pneumonia(), load_pneumonia(held_out="validation")
    assert final.train_images.shape == (4708, 28, 28)
    assert (len(final.test_labels), len(tuning.test_labels)) == (624, 524)
    np.testing.assert_array_equal(final.train_labels, tuning.train_labels)
    # MedMNIST states mean 0.5719 and standard deviation 0.1684 of the training pictures.
    assert abs(final.train_images.mean() - 0.5719) < 1e-4
    assert abs(final.train_images.std() - 0.1684) < 1e-4


def test_missing_damaged_and_other_files(tmp_path: Path) -> None:
    with pytest.raises(DataUnavailable, match=FILE):
        load_pneumonia(tmp_path)
    (tmp_path / FILE).write_bytes(b"PK\x03\x04 cut short")
    with pytest.raises(DataUnavailable, match="whole npz"):
        load_pneumonia(tmp_path)
    arrays = {
        f"{part}_images": np.zeros((2, 28, 28), np.uint8) for part in ("train", "val", "test")
    }
    np.savez(
        tmp_path / FILE,
        **arrays,
        **{f"{part}_labels": np.zeros((2, 1), np.uint8) for part in ("train", "val", "test")},
    )
    with pytest.raises(DataUnavailable, match="4708"):
        load_pneumonia(tmp_path)
    with pytest.raises(UnknownName, match="test, validation"):
        load_pneumonia(tmp_path, held_out="train")
