"""Adult from made-up small files: what is read, and what is refused; the real files where they
are.
"""

from __future__ import annotations

import gzip
import os

import numpy as np
import pytest

from papers.datasets import adult
from reticent.tables.known_schemas import adult_schema

LINE = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, "
    "White, Male, 2174, 0, 40, United-States, "
)
OTHER = "50, ?, 83311, HS-grad, 9, Divorced, ?, Husband, Black, Female, 0, 0, 13, ?, "


def write(folder, train: str, test: str) -> None:
    (folder / "adult.data.gz").write_bytes(gzip.compress(train.encode()))
    (folder / "adult.test.gz").write_bytes(gzip.compress(test.encode()))


def test_reads_fields_labels_and_the_comment_line(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adult, "_FILES", {"adult.data.gz": (2, 1), "adult.test.gz": (1, 1)})
    write(tmp_path, f"{LINE}<=50K\n{OTHER}>50K\n\n", f"|1x3 Cross validator\n{OTHER}>50K.\n")
    table = adult.load_adult(tmp_path)
    assert table.train_rows[0, :2].tolist() == [39.0, "State-gov"]
    assert table.train_labels.tolist() == [0, 1]
    assert table.test_labels.tolist() == [1]
    encoded = adult_schema().encode(table.train_rows)
    assert encoded.shape == (2, 113)
    assert np.square(encoded[0] - encoded[1]).sum() <= 14


@pytest.mark.data
def test_the_real_files() -> None:
    folder = os.environ.get("RETICENT_DATA")
    if not folder or not os.path.isfile(os.path.join(folder, "adult.data.gz")):
        pytest.skip("RETICENT_DATA names no folder with adult.data.gz")
    table = adult.load_adult()
    assert len(table.train_rows) == 32561
    encoded = adult_schema().encode(table.test_rows)  # no value outside the public lists
    assert encoded[:, -1].mean() < 0.03
