"""Estimators on frames: permuted as fitted, and the same in every library."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from reticent.core.errors import InvalidInput
from reticent.systems import CertifiedClassifier, PowerEncoder
from reticent.tables import Categorical, Numeric, TabularSchema

NAMES = ["age", "height", "weight", "pulse"]
random = np.random.default_rng(0)
VALUES = random.random((60, 4))
LABELS = np.where(VALUES[:, 0] > 0.5, "ill", "well")
PANDAS = pd.DataFrame(VALUES, columns=NAMES, index=[f"row {n}" for n in range(60)])
TABLE = pd.DataFrame(
    {
        "age": random.integers(17, 90, 60),
        "work": random.choice(["office", "field"], 60),
        "hours": random.integers(1, 99, 60),
    }
)
SCHEMA = TabularSchema(
    (
        Numeric("hours", 0, 100),
        Categorical("work", ("office", "field")),
        Numeric("age", 17, 90),
    )
)
SYSTEMS: dict[str, tuple[Any, pd.DataFrame]] = {
    "certified": (CertifiedClassifier(epsilon=1.0, classes=["ill", "well"], k_max=1), PANDAS),
    "power": (
        PowerEncoder(
            epsilon=4.0, delta=0.0, radius=None, mechanism="code", schema=SCHEMA, random_state=0
        ),
        TABLE,
    ),
}


@cache
def fitted(name: str) -> Any:
    system, table = SYSTEMS[name]
    return clone(system).fit(table, LABELS)


def as_frame(table: pd.DataFrame, order: list[str], library: str) -> Any:
    chosen = table[order]
    if library == "polars":
        return pl.DataFrame({name: chosen[name].to_list() for name in order})
    if library == "pyarrow":
        return pa.table({name: chosen[name].to_list() for name in order})
    return chosen


@pytest.mark.parametrize("name", SYSTEMS)
@settings(max_examples=10)
@given(data=st.data())
def test_any_order_in_any_library_is_answered_alike(name: str, data: st.DataObject) -> None:
    system, (_, table) = fitted(name), SYSTEMS[name]
    order = data.draw(st.permutations(list(table.columns)))
    library = data.draw(st.sampled_from(["pandas", "polars", "pyarrow"]))
    asked = as_frame(table, order, library)
    release = system.simulate(asked, seed=3)
    expected = system.simulate(table, seed=3)
    np.testing.assert_array_equal(release.values, expected.values)
    frame = release.to_frame()
    assert type(frame) is type(asked)
    if library == "pandas":
        assert frame.index.equals(table.index)
    if hasattr(system, "stable_distances"):
        for one, other in zip(
            system.stable_distances(asked), system.stable_distances(table), strict=True
        ):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
@pytest.mark.parametrize("name", SYSTEMS)
def test_a_fit_on_any_library_is_the_same_fit(name: str, library: str) -> None:
    system, table = SYSTEMS[name]
    other = clone(system).fit(as_frame(table, list(table.columns), library), LABELS)
    np.testing.assert_array_equal(
        other.simulate(table, seed=1).values, fitted(name).simulate(table, seed=1).values
    )


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_transformed_rows_are_frames_where_asked(library: str) -> None:
    system, (_, table) = clone(fitted("power")).set_output(transform=library), SYSTEMS["power"]
    found = system.fit(table, LABELS).transform(table)
    assert list(found.columns) == system.get_feature_names_out().tolist()
    assert len(found) == 60
    if library == "pandas":
        assert found.index.equals(table.index)


@pytest.mark.parametrize("name", SYSTEMS)
def test_other_columns_are_refused(name: str) -> None:
    system, (_, table) = fitted(name), SYSTEMS[name]
    names = list(table.columns)
    for asked, word in (
        (table.rename(columns={names[-1]: "blood"}), "'blood'"),
        (table.set_axis([names[0], names[0], *names[2:]], axis=1), f"'{names[0]}'"),
        (table[names[:-1]], f"'{names[-1]}'"),
        (table.assign(blood=0.0), "'blood'"),
    ):
        with pytest.raises(InvalidInput, match=word):
            system.simulate(asked, seed=0)


@pytest.mark.parametrize("name", SYSTEMS)
def test_an_array_and_a_frame_are_not_mixed(name: str) -> None:
    system, table = SYSTEMS[name]
    with pytest.raises(InvalidInput, match="has no column names"):
        fitted(name).simulate(table.to_numpy(), seed=0)
    if name == "power":  # its schema has names, whatever it was fitted on
        return
    positional = clone(system).fit(table.to_numpy(), LABELS)
    with pytest.raises(InvalidInput, match="has column names"):
        positional.simulate(table, seed=0)
