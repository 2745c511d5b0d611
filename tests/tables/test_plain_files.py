"""Public files without a schema: columns as what they look like, alike in every format."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from reticent.core.errors import InvalidInput
from reticent.tables import TabularSchema
from reticent.tables.plain_files import read_frame

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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("a,b\n", "has a header line and no rows"),
        ("a,a\n1,2\n", "more than one column 'a'"),
        ("a,b\n1\n", "line 2 has 1 cells, expected 2"),
    ],
)
def test_files_that_are_none(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(content)
    with pytest.raises(InvalidInput, match=message):
        read_frame(path)
