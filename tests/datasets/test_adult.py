"""Adult from made-up small files, the real files where they are, and the split of a table."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import numpy as np
import pytest

from reticent.core.errors import DataUnavailable
from reticent.datasets import adult
from reticent.datasets.table import last_fifth_held_out
from reticent.tables.known_schemas import adult_schema

SAMPLE = Path(adult.__file__).with_name(adult.SAMPLE_FILE)


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


def test_the_split_is_a_partition() -> None:
    train, test = last_fifth_held_out(101)
    assert len(test) == 20
    assert sorted(np.concatenate([train, test]).tolist()) == list(range(101))
