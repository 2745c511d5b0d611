"""IMDB embeddings: the split is the stated one, and files that are not the expected one are
refused.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from reticent.core.errors import DataUnavailable
from reticent.datasets import DATA_VARIABLE
from reticent.datasets.imdb import FILE, load_imdb

needs_files = pytest.mark.skipif(
    not os.environ.get(DATA_VARIABLE), reason=f"{DATA_VARIABLE} is not set"
)


@pytest.mark.data
@needs_files
def test_last_fifth_is_held_out() -> None:
    data = load_imdb()
    assert (len(data.train_rows), len(data.test_rows)) == (19924, 4980)
    np.testing.assert_allclose(np.linalg.norm(data.train_rows, axis=1), 1.0, atol=2e-3)
    with np.load(Path(os.environ[DATA_VARIABLE]) / FILE) as stored:
        held = np.random.RandomState(0).permutation(24904)[-4980:]
        np.testing.assert_array_equal(data.test_labels, stored["y"][held])


def test_missing_damaged_and_other_files(tmp_path: Path) -> None:
    with pytest.raises(DataUnavailable, match=FILE):
        load_imdb(tmp_path)
    (tmp_path / FILE).write_bytes(b"no archive")
    with pytest.raises(DataUnavailable, match="whole npz"):
        load_imdb(tmp_path)
    np.savez(tmp_path / FILE, X=np.zeros((3, 384), np.float16), y=np.zeros(3, np.uint8))
    with pytest.raises(DataUnavailable, match="24904"):
        load_imdb(tmp_path)
