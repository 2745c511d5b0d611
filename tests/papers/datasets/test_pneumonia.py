"""PneumoniaMNIST: official parts, and files that are not the expected one are refused."""

from __future__ import annotations

import os

import numpy as np
import pytest

from papers.datasets.files import DATA_VARIABLE
from papers.datasets.pneumonia import load_pneumonia

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
