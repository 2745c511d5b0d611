"""IMDB embeddings: the split is the stated one, and files that are not the expected one are
refused.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from papers.datasets.files import DATA_VARIABLE
from papers.datasets.imdb import FILE, load_imdb

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
