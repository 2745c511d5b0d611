"""Covertype: the expected file, and refusals of others."""

from __future__ import annotations

import os

import numpy as np
import pytest

from papers.datasets import covertype, covertype_schema


def write(folder, rows: int) -> None:
    random = np.random.default_rng(0)
    table = np.zeros((rows, 54), dtype=np.int16)
    table[:, :10] = random.integers(0, 200, (rows, 10))
    table[np.arange(rows), 10 + random.integers(4, size=rows)] = 1
    table[np.arange(rows), 14 + random.integers(40, size=rows)] = 1
    np.savez(folder / covertype.FILE, X=table, y=(np.arange(rows) % 7 + 1).astype(np.uint8))


def test_reads_and_splits(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(covertype, "_COUNTS", (10,) * 7)
    write(tmp_path, 70)
    table = covertype.load_covertype(tmp_path)
    assert (len(table.train_rows), len(table.test_rows)) == (56, 14)
    assert set(np.concatenate([table.train_labels, table.test_labels])) == set(range(7))
    encoded = covertype_schema().encode(table.train_rows)
    assert encoded.shape == (56, 54)
    assert covertype_schema().domain.contains(encoded).all()


@pytest.mark.data
@pytest.mark.slow
def test_the_real_file() -> None:
    folder = os.environ.get("RETICENT_DATA")
    if not folder or not os.path.isfile(os.path.join(folder, covertype.FILE)):
        pytest.skip(f"RETICENT_DATA names no folder with {covertype.FILE}")
    table = covertype.load_covertype()
    covertype_schema().encode(table.test_rows)
    raw = table.train_rows[:, :10]
    schema = covertype_schema().attributes[:10]
    assert all(
        raw[:, i].min() >= column.lower and raw[:, i].max() <= column.upper
        for i, column in enumerate(schema)
    )
