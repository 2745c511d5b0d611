"""Encoding and decoding undo each other; what no row encodes to is read as the nearest thing."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.datasets import load_adult_sample
from reticent.tables.attributes import Categorical, Numeric, OneHot
from reticent.tables.decoding import decode
from reticent.tables.known_schemas import adult_schema
from reticent.tables.schema import TabularSchema

SCHEMA = TabularSchema(
    (
        Numeric("age", 17, 90),
        Numeric("gain", -5, 99_999, scale="log"),
        Numeric("mass", 0, 2000, scale="log", missing=-999),
        Categorical("work", ("a", "b", "?"), other="?"),
        Categorical("size", (1, 2, 3)),
        OneHot("soil", ("wet", "dry")),
    )
)
ROWS = [
    [17, -5, -999, "a", 1, 1, 0],
    [90, 99_999, 2000, "b", 3.0, 0, 1],
    [38.5, 0.25, 0, "?", 2, 1, 0],
    [50, 7000, 1e-3, "a", 1, 0, 1],
]


def test_rows_come_back() -> None:
    back = decode(SCHEMA, SCHEMA.encode(ROWS))
    assert back.shape == (4, 7)
    for found, row in zip(back.tolist(), ROWS, strict=True):
        for value, wanted in zip(found, row, strict=True):
            assert (
                value == wanted
                if isinstance(wanted, str)
                else value == pytest.approx(wanted, rel=1e-12, abs=1e-9)
            )


def test_all_of_a_real_table_comes_back() -> None:
    rows, schema = load_adult_sample().test_rows, adult_schema()
    back = decode(schema, schema.encode(rows))
    for index, attribute in enumerate(schema.attributes):
        if isinstance(attribute, Numeric):
            np.testing.assert_allclose(
                back[:, index].astype(float), rows[:, index].astype(float), rtol=1e-9, atol=1e-7
            )
        else:
            assert back[:, index].tolist() == rows[:, index].tolist()


def test_a_guess_is_read_as_the_nearest_thing() -> None:
    guess = np.array([[-0.2, 1.7, 0.5, 0.44, 0.2, 0.1, 0.21, 0.0, 0.3, 0.2, -0.5, 0.4]])
    assert decode(SCHEMA, guess)[0].tolist() == [17, pytest.approx(99_999), -999, "?", 2, 0, 1]
    assert decode(SCHEMA, np.where(np.arange(12) == 3, 0.43, guess))[0, 2] == pytest.approx(
        np.expm1(0.5 * np.log1p(2000))
    )
    # A word that the schema counts as another comes back as that other.
    assert decode(SCHEMA, SCHEMA.encode([[20, 0, 1, "unheard of", 1, 1, 0]]))[0, 3] == "?"
    assert decode(SCHEMA, np.empty((0, 12))).shape == (0, 7)
