"""Rows from and to files of every format, alike in each, and in blocks in their order."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from reticent.core.errors import InvalidInput
from reticent.tables import Shards, TabularSchema, shards
from reticent.tables.batches import (
    FORMATS,
    encoded_columns,
    names_in,
    read_frame,
    read_whole,
)

TABLE = pd.DataFrame(
    {
        "age": [31, 44, None, 52] * 5,
        "member": [True, False, True, True] * 5,
        "seen": [datetime(2020, 1, 1), datetime(2021, 5, 2, 8), None, datetime(2023, 1, 1)] * 5,
        "work": ["office", "field", None, "12"] * 5,
        "code": ["1_0", "2", "3", "4"] * 5,
    }
)


def test_a_draft_is_the_same_from_every_kind_of_file(tmp_path: Path) -> None:
    TABLE.to_csv(tmp_path / "rows.csv", index=False)
    TABLE.to_parquet(tmp_path / "rows.parquet")
    TABLE.to_feather(tmp_path / "rows.arrow")
    expected = TabularSchema.from_frame(TABLE)
    for name in ("rows.csv", "rows.parquet", "rows.arrow"):
        assert TabularSchema.from_frame(read_frame(tmp_path / name)) == expected
    np.testing.assert_array_equal(
        expected.encode(read_frame(tmp_path / "rows.csv")), expected.encode(TABLE)
    )


def test_what_is_written_is_read(tmp_path: Path) -> None:
    columns = {"age": np.array([31.5, 44.0]), "whose": ["ana", "ben"]}
    for ending in FORMATS:
        path = tmp_path / f"rows.{ending}"
        path.write_bytes(encoded_columns(columns, ending))
        found = read_whole(path, ["age"], subject_column="whose")
        assert np.asarray(found.rows).tolist() == [[31.5], [44.0]]
        assert found.subjects == ("ana", "ben")
        assert names_in(path, "whose") == ["ana", "ben"]
        with pytest.raises(InvalidInput, match="column 'who', got 0"):
            names_in(path, "who")


def test_blocks_are_the_rows_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "_AT_ONCE", 4)
    rng = np.random.default_rng(0)
    tables = [rng.standard_normal((size, 3)).astype(np.float32) for size in (1, 9, 4)]
    labels = [rng.integers(0, 2, size=len(table)) for table in tables]
    for number, (table, column) in enumerate(zip(tables, labels, strict=True)):
        np.save(tmp_path / f"x{number}.npy", table)
        np.save(tmp_path / f"y{number}.npy", column)
    found = Shards.of_files(
        sorted(tmp_path.glob("x*.npy")), [str(tmp_path / f"y{number}.npy") for number in range(3)]
    )
    assert all(isinstance(table, np.memmap) for table in found.rows)
    blocks = list(found.blocks())
    assert [len(block) for block in blocks] == [1, 4, 4, 1, 4]
    np.testing.assert_array_equal(np.concatenate(blocks), np.concatenate(tables))
    np.testing.assert_array_equal(found.all_labels(), np.concatenate(labels))
    assert (len(found), found.features) == (14, 3)
    np.testing.assert_array_equal(found.first, tables[0][:1])
