"""Columns read by their type and by their different words: the codes and refusals of cells that are
read one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from reticent.tables import Categorical, Hashed, Numeric, OneHot, Ordered, TabularSchema
from reticent.tables.columns import FEW

ROWS = FEW + 100
WORDS = np.array(["", "a", "b", "ä", "3"], dtype=object)
SCHEMA = TabularSchema(
    (
        Numeric("age", 0, 90, missing=0.5),
        Numeric("pay", 0, 1e6),
        Categorical("sex", ("a", "b", "3"), other="b", missing="3"),
        Categorical("code", (2**60, 2**60 + 1, 3)),
        Categorical("flag", ("True", "False")),
        Hashed("town", 16),
        Ordered("grade", ("low", "mid", "high"), missing=True),
        OneHot("kind", ("k1", "k2")),
        Categorical("odd", (1, "x", 2.5)),
    )
)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    age = rng.uniform(-5, 95, ROWS)
    age[::7] = np.nan
    one = rng.integers(0, 2, ROWS)
    return pd.DataFrame(
        {
            "age": age,
            "pay": rng.integers(0, 10**6, ROWS),
            "sex": rng.choice([*WORDS, None], ROWS),
            "code": rng.choice(np.array([2**60, 2**60 + 1, 3]), ROWS),
            "flag": rng.random(ROWS) < 0.5,
            "town": rng.choice(WORDS[1:], ROWS),
            "grade": pd.Categorical(rng.choice(["low", "mid", "high"], ROWS)),
            "k1": one,
            "k2": 1 - one,
            "odd": rng.choice(np.array([1, "x", 2.5, 1.0], dtype=object), ROWS),
        }
    )


def one_by_one(schema: TabularSchema, X: Any) -> np.ndarray:
    """Codes of short tables, whose cells are Python objects."""
    cells = schema.rows(X)
    return np.concatenate([schema.encode(part) for part in np.array_split(cells, 4)])


def as_polars(frame: pd.DataFrame) -> Any:
    import polars as pl

    return pl.from_pandas(frame)


def as_arrow(frame: pd.DataFrame) -> Any:
    import pyarrow as pa

    halves = [pa.Table.from_pandas(part) for part in (frame[:1000], frame[1000:])]
    return pa.concat_tables(halves)


@pytest.mark.parametrize("form", [lambda rows: rows, as_polars, as_arrow, np.asarray])
def test_codes_are_those_of_cells_read_one_by_one(frame: pd.DataFrame, form: Any) -> None:
    of_one_type = TabularSchema(SCHEMA.attributes[:-1])
    rows = form(frame.drop(columns="odd"))
    assert np.array_equal(of_one_type.encode(rows), one_by_one(of_one_type, rows))


def test_a_column_of_several_types_is_read_cell_by_cell(frame: pd.DataFrame) -> None:
    assert np.array_equal(SCHEMA.encode(frame), one_by_one(SCHEMA, frame))
