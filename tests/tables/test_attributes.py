"""Every kind of attribute: public units, missing values, and what files and frames say alike."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.core.errors import InvalidInput
from reticent.tables import (
    Categorical,
    Hashed,
    Instant,
    Numeric,
    Ordered,
    TabularSchema,
    Truth,
    read_rows,
)

SCHEMA = TabularSchema(
    (
        Numeric("gain", 0.0, 100.0, scale="log", missing=-1.0),
        Categorical("work", ("office", "field", "?"), other="field", missing="?"),
        Instant("seen", "2020-01-01", "2024-01-01T12:00", missing=True),
        Truth("member", missing=True),
        Ordered("grade", ("low", "middle", "high"), missing=True),
        Hashed("town", 16, missing=True),
    )
)
CELLS: dict[str, st.SearchStrategy[Any]] = {
    "gain": st.none() | st.floats(-1e6, 1e6),
    "work": st.none() | st.sampled_from(["office", "field", "sea"]),
    "seen": st.none() | st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)),
    "member": st.none() | st.booleans(),
    "grade": st.none() | st.sampled_from(["low", "middle", "high"]),
    "town": st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1),
}


def encoded(name: str, cells: list[Any]) -> np.ndarray:
    attribute = next(part for part in SCHEMA.attributes if part.name == name)
    rows = np.empty((len(cells), 1), dtype=object)
    rows[:, 0] = cells
    return TabularSchema((attribute,)).encode(rows)


@pytest.mark.parametrize("name", CELLS)
@given(data=st.data())
def test_two_cells_are_at_most_one_apart(name: str, data: st.DataObject) -> None:
    pair = encoded(name, [data.draw(CELLS[name]), data.draw(CELLS[name])])
    assert np.linalg.norm(pair[0] - pair[1]) <= 1.0 + 1e-15
    alone = encoded(name, [data.draw(CELLS[name])])
    assert (alone >= 0).all()
    assert (alone <= 1).all()


@pytest.mark.parametrize("name", CELLS)
def test_every_way_to_say_no_value_is_the_same_and_none_other(name: str) -> None:
    nothing = [None, float("nan"), np.float32("nan"), pd.NaT, pd.NA, np.datetime64("NaT"), ""]
    found = encoded(name, nothing)
    assert (found == found[0]).all()
    some = {"gain": 3.0, "work": "office", "seen": date(2021, 5, 1), "member": True}
    other = encoded(name, [{**some, "grade": "low", "town": "Bonn"}[name]])
    assert not np.array_equal(other[0], found[0])


@pytest.mark.parametrize(
    "attribute",
    [
        Numeric("x", 0, 1),
        Categorical("x", ("a", "b")),
        Instant("x", "2020-01-01", "2021-01-01"),
        Truth("x"),
        Ordered("x", ("a", "b")),
        Hashed("x", 4),
    ],
)
def test_a_missing_value_is_refused_where_the_schema_has_none(attribute: Any) -> None:
    with pytest.raises(InvalidInput, match="column 'x': 1 of 1 values are"):
        TabularSchema((attribute,)).encode([[None]])


def columns(rows: int) -> dict[str, list[Any]]:
    random = np.random.default_rng(5)
    start = datetime(2019, 6, 1)
    table = {
        "gain": random.integers(-5, 200, rows).astype(float).tolist(),
        "work": random.choice(["office", "field", "sea"], rows).tolist(),
        "seen": [start + timedelta(hours=int(h)) for h in random.integers(0, 40_000, rows)],
        "member": (random.random(rows) < 0.5).tolist(),
        "grade": random.choice(["low", "middle", "high"], rows).tolist(),
        "town": random.choice([f"town {n}" for n in range(99)], rows).tolist(),
    }
    for cells in table.values():
        for place in random.integers(0, rows, 3):
            cells[place] = None
    return table


def test_pandas_polars_arrow_and_csv_say_the_same(tmp_path: Any) -> None:
    table = columns(40)
    frames = [pd.DataFrame(table), pl.DataFrame(table), pa.table(table)]
    expected = SCHEMA.encode(frames[0])
    for frame in frames[1:]:
        np.testing.assert_array_equal(SCHEMA.encode(frame), expected)
    path = tmp_path / "rows.csv"
    order = ["town", "gain", "seen", "work", "grade", "member"]
    frames[0][order].to_csv(path, index=False)
    np.testing.assert_array_equal(SCHEMA.encode(read_rows(path, SCHEMA)), expected)
    reviewed = [SCHEMA.review(frame) for frame in frames]
    assert reviewed[0] == reviewed[1] == reviewed[2]


def test_a_review_counts_what_encoding_moves() -> None:
    rows = [
        [-5.0, "sea", date(2019, 1, 1), None, None, "Bonn"],
        [200.0, None, datetime(2030, 1, 1), True, "low", None],
        [-1.0, "office", None, False, "low", "Ulm"],
        [50.0, "office", datetime(2021, 1, 1), False, "low", "Ulm"],
    ]
    assert SCHEMA.review(rows) == {
        "gain": {"missing": 1, "below": 1, "above": 1},
        "work": {"missing": 1, "unknown": 1},
        "seen": {"missing": 1, "below": 1, "above": 1},
        "member": {"missing": 1},
        "grade": {"missing": 1},
        "town": {"missing": 1},
    }


def test_times_with_a_zone_are_moved_to_utc_and_texts_are_read() -> None:
    east = timezone(timedelta(hours=2))
    same = [
        datetime(2021, 5, 1, 6, tzinfo=UTC),
        datetime(2021, 5, 1, 8, tzinfo=east),
        datetime(2021, 5, 1, 6),
        "2021-05-01T06:00",
        "2021-05-01 08:00:00+02:00",
        np.datetime64("2021-05-01T06:00"),
        pd.Timestamp("2021-05-01T08:00", tz=east),
    ]
    found = encoded("seen", same)
    assert (found == found[0]).all()
    start, end = datetime(2020, 1, 1), datetime(2024, 1, 1, 12)
    assert found[0, 0] == pytest.approx(
        (datetime(2021, 5, 1, 6) - start) / (end - start), abs=1e-15
    )
    times = pd.DataFrame({"seen": pd.to_datetime(["2021-05-01T06:00"])})
    np.testing.assert_array_equal(TabularSchema((SCHEMA.attributes[2],)).encode(times)[0], found[0])
    with pytest.raises(InvalidInput, match="column 'seen': 1 of 1 values are no dates") as refused:
        encoded("seen", ["yesterday"])
    assert "yesterday" not in str(refused.value)


def test_buckets_depend_on_the_word_and_the_salt_alone() -> None:
    words = [f"town {number}" for number in range(2000)]
    column = Hashed("town", 64)
    cells = np.array(words, dtype=object)[:, None]
    codes = column.code(cells)
    assert codes.tolist() == [column.bucket(word) for word in words]
    shuffled = np.random.default_rng(0).permutation(2000)
    assert (column.code(cells[shuffled]) == codes[shuffled]).all()
    # 2,000 words in 64 buckets: a bucket holds Binomial(2000, 1/64), beyond 5 deviations at 1e-6.
    held = np.bincount(codes, minlength=64)
    assert np.abs(held - 2000 / 64).max() < 5.2 * np.sqrt(2000 / 64)
    assert (Hashed("town", 64, salt="other").code(cells) != codes).mean() > 0.9


@pytest.mark.parametrize(
    ("cell", "column", "what"),
    [
        ("soon", "seen", "cannot be read as a value of kind 'instant'"),
        ("maybe", "member", "cannot be read as a value of kind 'truth'"),
        ("best", "grade", "cannot be read as a value of kind 'ordered'"),
    ],
)
def test_a_cell_of_a_file_that_is_none_of_its_kind_is_named_by_its_line(
    tmp_path: Any, cell: str, column: str, what: str
) -> None:
    table = pd.DataFrame({name: [None, None] for name in CELLS}, dtype=object)
    table.loc[1, column] = cell
    table.to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(InvalidInput, match=f"line 3, column '{column}': {what}") as refused:
        read_rows(tmp_path / "rows.csv", SCHEMA)
    assert cell not in str(refused.value)
