"""Rows of pandas, polars and pyarrow frames are those of the array, by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.core.errors import InvalidInput
from reticent.core.guarantees import AddRemove, Guarantee
from reticent.core.releases import Receipt, Release
from reticent.tables.frames import (
    NamedRows,
    framed,
    named_rows,
    names_of,
    ordered_rows,
    plain_rows,
    rows_of,
)

LIBRARIES = ("pandas", "polars", "pyarrow", "record batch", "named rows")


def frame_of(library: str, columns: dict[str, list[Any]]) -> Any:
    if library == "pandas":
        return pd.DataFrame(columns)
    if library == "polars":
        return pl.DataFrame(columns)
    if library == "pyarrow":
        return pa.table(columns)
    if library == "record batch":
        return pa.RecordBatch.from_pydict(columns)
    return NamedRows(np.array(list(columns.values()), dtype=object).T, tuple(columns))


MIXED: dict[str, list[Any]] = {
    "age": [31, 44, 52],
    "gain": [0.5, None, 2.5],
    "work": ["office", None, "field"],
    "member": [True, False, True],
}


@given(order=st.permutations(list(MIXED)), library=st.sampled_from(LIBRARIES))
def test_cells_are_found_by_name_in_every_library(order: list[str], library: str) -> None:
    frame = frame_of(library, {name: MIXED[name] for name in order})
    found = ordered_rows(frame, list(MIXED))
    for column, name in enumerate(MIXED):
        cells = found[:, column].tolist()
        assert cells == MIXED[name], (library, name)
    assert names_of(frame).tolist() == order
    rows, names = named_rows(frame)
    assert names.tolist() == order
    assert rows[:, order.index("age")].tolist() == MIXED["age"]


@pytest.mark.parametrize("library", LIBRARIES[:-1])
def test_numbers_and_truth_values_are_doubles_and_missing_ones_nan(library: str) -> None:
    columns = {name: MIXED[name] for name in ("member", "gain", "age")}
    found = plain_rows(frame_of(library, columns))
    assert found.dtype == np.float64
    expected = [[1.0, 0.5, 31.0], [0.0, np.nan, 44.0], [1.0, 2.5, 52.0]]
    np.testing.assert_array_equal(found, expected)


def release(values: Any, withheld: list[bool]) -> Release:
    guarantee = Guarantee(1.0, 0.0, AddRemove(data_set="ward"))
    receipt = Receipt("test", guarantee, len(withheld), "", "none", "exact", False)
    return Release(np.array(values), np.array(withheld), receipt)


def test_a_release_keeps_the_index_and_withheld_labels_are_missing() -> None:
    asked = pd.DataFrame({"a": [1.0, 2.0, 3.0]}, index=["p7", "p9", "p1"])
    labels = np.array(["ill", None, "well"], dtype=object)
    answers = release(labels, [False, True, False])
    found = framed(answers, asked, ("label",)).to_frame()
    assert found.index.tolist() == ["p7", "p9", "p1"]
    assert found["label"].isna().tolist() == [False, True, False]
    assert found.loc["p7", "label"] == "ill"
    polars = framed(answers, asked, ("label",)).to_frame("polars")
    assert polars["label"].to_list() == ["ill", None, "well"]
    codes = release(np.array([1, -1]), [False, True]).to_frame()
    assert codes["value"].isna().tolist() == [False, True]
    assert rows_of(np.eye(2)).library == ""
    with pytest.raises(InvalidInput, match="library='spark': expected one of"):
        answers.to_frame("spark")
