"""UTKFace: the stored differences decode, and no time stamp is on both sides."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from papers.datasets import load_utkface
from papers.datasets.files import DATA_VARIABLE
from papers.datasets.utkface import FILE, _decode

needs_files = pytest.mark.skipif(
    not os.environ.get(DATA_VARIABLE), reason=f"{DATA_VARIABLE} is not set"
)


def test_decode_inverts_two_way_differences() -> None:
    pictures = np.random.default_rng(0).integers(0, 256, size=(3, 5, 4), dtype=np.uint8)
    columns = np.diff(pictures, axis=2, prepend=np.zeros((3, 5, 1), np.uint8))
    stored = np.diff(columns, axis=1, prepend=np.zeros((3, 1, 4), np.uint8))
    np.testing.assert_array_equal(_decode(stored), pictures)


@pytest.mark.data
@pytest.mark.slow
@needs_files
def test_stamps_do_not_cross_the_split() -> None:
    data = load_utkface()
    assert len(data.train_labels) + len(data.test_labels) == 23704
    assert 0.17 < len(data.test_labels) / 23704 < 0.23
    # Neighbouring pixels of a decoded face are close, which a wrong decode would destroy.
    assert np.abs(np.diff(data.test_images[:100], axis=2)).mean() < 0.06
    place = Path(os.environ[DATA_VARIABLE]) / FILE
    with np.load(place) as stored:
        stamp, gender = stored["stamp"], stored["gender"]
    stamps = np.unique(stamp)
    held = stamps[
        np.random.RandomState(0).permutation(len(stamps))[len(stamps) - len(stamps) // 5 :]
    ]
    assert len(data.test_labels) == np.isin(stamp, held).sum()
    assert data.test_labels.sum() == gender[np.isin(stamp, held)].sum()
