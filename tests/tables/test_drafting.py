"""Drafts of schemas: from public rows, with ranges that hold them all."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reticent.core.errors import InvalidInput
from reticent.tables import Categorical, Hashed, Instant, Numeric, TabularSchema, Truth
from reticent.tables.drafting import draft_schema, outward, outward_dates

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


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            [f"{'the quick brown fox jumps again ' * 2}{n}" for n in range(ROWS)],
            "running text",
        ),
        ([f"id-{n}" for n in range(ROWS)], "names or identifiers"),
        ([3.0] * ROWS, "fewer than two different values"),
        ([None] * ROWS, "fewer than two different values"),
        ([float("inf")] + [1.0] * (ROWS - 1), "holds infinity"),
        ([(1, 2)] * (ROWS - 1) + [(1,)], "neither numbers, truth values, dates nor words"),
    ],
)
def test_columns_that_nothing_can_be_drafted_from(column: Any, message: str) -> None:
    table = pd.DataFrame({"age": TABLE["age"], "odd": pd.Series(column, dtype=object)})
    with pytest.raises(InvalidInput, match=message) as refused:
        TabularSchema.from_frame(table)
    assert "'odd'" in str(refused.value)
    assert len(TabularSchema.from_frame(table, ignore=["odd"]).attributes) == 1
    if "infinity" in message or "neither" in message:
        return
    left = draft_schema(table, leave_out=True)
    assert left.left_out == ("odd",)
    assert "'odd'" in left.note
    assert TabularSchema.from_dict(left.to_dict()) == left
    assert np.array_equal(left.encode(table), left.encode(table[["age"]]))


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


@given(times=st.tuples(st.datetimes(datetime(1, 1, 2), datetime(9990, 1, 1)), st.integers(0, 9000)))
def test_dates_are_rounded_outward(times: tuple[datetime, int]) -> None:
    first = times[0]
    last = first + (datetime(2000, 1, 2) - datetime(2000, 1, 1)) * (times[1] / 10)
    lower, upper = outward_dates(first, last)
    assert datetime.fromisoformat(lower) <= first
    assert datetime.fromisoformat(upper) > last
