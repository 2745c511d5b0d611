"""Drafts of schemas: from public rows, with ranges that hold them all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reticent.core.errors import InvalidInput
from reticent.tables import Categorical, Hashed, Instant, Numeric, TabularSchema, Truth
from reticent.tables.batches import read_batches
from reticent.tables.drafting import outward
from reticent.tables.files import read_rows

ROWS = 200
random = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "age": random.integers(17, 91, ROWS),
        "weight": random.normal(70, 10, ROWS).round(3),
        "gain": np.where(random.random(ROWS) < 0.97, 0, 50_000),
        "member": random.random(ROWS) < 0.5,
        "work": random.choice(["office", "field", "sea"], ROWS),
        "town": random.choice([f"town {n}" for n in range(90)], ROWS),
        "seen": pd.to_datetime("2019-05-02") + pd.to_timedelta(random.integers(0, 900, ROWS), "D"),
        "label": random.choice(["ill", "well"], ROWS),
    }
)


def test_every_kind_of_column_is_drafted() -> None:
    schema = TabularSchema.from_frame(TABLE, ignore=["label"])
    kinds = [type(attribute) for attribute in schema.attributes]
    assert kinds == [Numeric, Numeric, Numeric, Truth, Categorical, Hashed, Instant]
    age, weight, gain, _, work, _, seen = schema.attributes
    assert (age.lower, age.upper) == (17.0, 90.0)
    assert weight.lower <= TABLE["weight"].min() <= TABLE["weight"].max() <= weight.upper
    assert (gain.scale, age.scale) == ("log", "linear")
    assert work.categories == ("field", "office", "sea", "(other)", "(missing)")
    assert (seen.lower, seen.upper) == ("2019-01-01", "2022-01-01")
    assert "200 public rows" in schema.note
    rows = TABLE.drop(columns="label")
    assert schema.review(rows) == {}
    holes = rows.astype(object)
    holes.iloc[0] = None
    assert schema.review(holes) == {name: {"missing": 1} for name in rows.columns}
    strict = TabularSchema.from_frame(TABLE, ignore=["label"], missing=False)
    with pytest.raises(InvalidInput, match="missing"):
        strict.encode(holes)


@given(
    ends=st.tuples(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9)).filter(
        lambda pair: abs(pair[0] - pair[1]) > 1e-6
    )
)
@example(ends=(5e-324, -100.0))
@example(ends=(-5e-324, 100.0))
@example(ends=(0.1, 0.3 + 1e-16))
def test_ranges_are_rounded_outward_and_not_far(ends: tuple[float, float]) -> None:
    low, high = min(ends), max(ends)
    lower, upper = outward(low, high)
    assert lower <= low
    assert high <= upper
    slack = 0.11 * (high - low) + 1e-15 * max(abs(low), abs(high))
    assert low - lower <= slack
    assert upper - high <= slack


@pytest.mark.parametrize("ends", [("2020-01-01", "9999-12-31"), ("9999-12-30", "9999-12-31")])
def test_the_last_of_all_days_has_a_draft(ends: tuple[str, str]) -> None:
    """Tables write 9999-12-31 for "still open", and no year comes after it."""
    frame = pd.DataFrame({"until": np.array(ends * 5, dtype="datetime64[us]")})
    schema = TabularSchema.from_frame(frame)
    assert isinstance(schema.attributes[0], Instant)
    assert schema.review(frame) == {}


@pytest.mark.parametrize("number", [5e-324, 1.7e308])
def test_numbers_at_the_ends_of_doubles_are_refused_in_words(number: float) -> None:
    with pytest.raises(InvalidInput, match="'size'"):
        TabularSchema.from_frame(pd.DataFrame({"size": [0.0, number] * 5}))


def test_all_columns_without_a_draft_are_refused_at_once() -> None:
    frame = pd.DataFrame({"age": [1, 2], "c": ["x"] * 2, "note": ["y"] * 2})
    with pytest.raises(InvalidInput, match=r"(?s)'c'.*'note'"):
        TabularSchema.from_frame(frame)


def test_what_a_draft_ignored_may_stand_in_frames_and_files(tmp_path: Path) -> None:
    frame = pd.DataFrame({"age": [1, 2, 3], "label": ["x", "y", "x"]})
    schema = TabularSchema.from_frame(frame, ignore=["label"])
    again = TabularSchema.from_dict(schema.to_dict())
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    expected = schema.encode(frame[["age"]])
    assert (again.encode(frame) == expected).all()
    assert (schema.encode(read_rows(tmp_path / "rows.csv", again)) == expected).all()
    (batch,) = read_batches(tmp_path / "rows.parquet", again)
    assert (schema.encode(batch.rows) == expected).all()
    with pytest.raises(InvalidInput, match="other"):
        schema.encode(frame.assign(other=1))
