from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reticent.tables import Shards, shards


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
    assert [len(block) for block in blocks] == found.block_sizes == [1, 4, 4, 1, 4]
    np.testing.assert_array_equal(np.concatenate(blocks), np.concatenate(tables))
    np.testing.assert_array_equal(found.all_labels(), np.concatenate(labels))
    assert (len(found), found.features) == (14, 3)
    np.testing.assert_array_equal(found.first, tables[0][:1])
