"""Adult from made-up small files: what is read, and what is refused; the real files where they
are.
"""

from __future__ import annotations

import gzip
import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from reticent.core.errors import DataUnavailable
from reticent.datasets import adult
from reticent.tables.known_schemas import adult_schema

SAMPLE = Path(adult.__file__).with_name(adult.SAMPLE_FILE)
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


def test_the_sample_is_as_it_was_drawn() -> None:
    content = SAMPLE.read_bytes()
    assert (
        hashlib.sha256(content).hexdigest()
        == "db55d7f0e020754df7052dc1717fe9376fb7599fbe92895b68ed1ea218fac2a7"
    )
    table = adult.load_adult_sample()
    assert (table.train_rows.shape, table.test_rows.shape) == ((6400, 14), (1600, 14))
    assert (int(table.train_labels.sum()), int(table.test_labels.sum())) == (1525, 385)
    assert "CC BY 4.0" in table.origin
    lines = gzip.decompress(content).decode().splitlines()
    assert lines[0].split(",") == [*adult.COLUMNS, "income"]
    # The cut is last_fifth_held_out's: row 0 of the training part is the line that its first number
    # names.
    first = np.random.RandomState(0).permutation(8000)[0]
    words = lines[1 + first].split(",")[:-1]
    read = [
        float(word) if name in adult.NUMERIC else word
        for name, word in zip(adult.COLUMNS, words, strict=True)
    ]
    assert table.train_rows[0].tolist() == read
    adult_schema().encode(table.train_rows)  # no value that the schema refuses


@pytest.mark.parametrize("content", [b"not gzip", gzip.compress(b"age,income\n1,2\n")])
def test_a_damaged_sample_is_refused(
    tmp_path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    (tmp_path / adult.SAMPLE_FILE).write_bytes(content)
    monkeypatch.setattr(adult, "files", lambda _: tmp_path)
    with pytest.raises(DataUnavailable, match="install the package again"):
        adult.load_adult_sample()
