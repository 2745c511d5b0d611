"""What is sent for rows, and what is taken for an answer."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.client.wire import (
    json_bytes,
    json_cells,
    receipt_of,
    values_of,
)
from reticent.core import Guarantee, Receipt, Replace
from reticent.core.errors import InvalidInput


def made(**changed: Any) -> dict[str, Any]:
    guarantee = Guarantee(0.5, 1e-6, Replace(1, data_set="ward"))
    receipt = Receipt("label", guarantee, 2, "ab" * 32, "none", "exact", False, "1/7", 7, "cd" * 32)
    return {**receipt.to_dict(), **changed}


@pytest.mark.parametrize(
    ("rows", "cells"),
    [
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.array([[1.5, np.nan]]), [[1.5, None]]),
        (np.array([[True, False]]), [[1.0, 0.0]]),
        (np.array([["a", None, 2, np.float64(0.5)]], dtype=object), [["a", None, 2, 0.5]]),
        (np.zeros((1, 2, 2)), [[0.0] * 4]),
    ],
)
def test_rows_are_lists_of_cells(rows: Any, cells: list[list[Any]]) -> None:
    found, names = json_cells(rows)
    assert names is None
    assert found == cells
    assert json.loads(json_bytes(found)) == cells


@pytest.mark.parametrize("number", [float("inf"), -float("inf")])
def test_rows_that_json_has_not_are_refused(number: float) -> None:
    for rows in ([[1.0, number]], np.array([[1.0, number, "a"]], dtype=object)):
        with pytest.raises(InvalidInput, match="infinity") as raised:
            json_cells(rows)
        assert "1.0" not in str(raised.value)
    for shape in ((0, 3), (3,)):
        with pytest.raises(InvalidInput, match="expected shape"):
            json_cells(np.zeros(shape))
    with pytest.raises(InvalidInput, match="got bytes"):
        json_cells(np.array([[b"secret", 1]], dtype=object))


def test_a_receipt_has_every_field_or_is_none() -> None:
    values = made()
    assert receipt_of(values).to_dict() == values
    for name in values:
        with pytest.raises(InvalidInput):
            receipt_of({key: value for key, value in values.items() if key != name})
        with pytest.raises(InvalidInput):
            receipt_of({**values, name: None})
    for more in (
        {"extra": 1},
        {"answers": True},
        {"guarantee": {**values["guarantee"], "more": 1}},
    ):
        with pytest.raises(InvalidInput):
            receipt_of({**values, **more})


def test_answers_are_as_a_release_has_them() -> None:
    values, withheld = values_of([3, None], [False, True], 2)
    assert values.tolist() == [3, -1]
    assert values.dtype == np.int64
    assert withheld.tolist() == [False, True]
    assert values_of(["yes", None], [False, True], 2)[0].tolist() == ["yes", None]
    assert values_of(["yes", "no"], [False, False], 2)[0].dtype.kind == "U"
    vectors = values_of([[0.5, 1], None], [False, True], 2)[0]
    assert vectors.shape == (2, 2)
    assert np.isnan(vectors[1]).all()


@pytest.mark.parametrize(
    ("answers", "withheld"),
    [
        ([1], [False]),
        ([1, 2], [False]),
        ([1, None], [False, False]),
        ([1, 2], [False, True]),
        ([1, 2], [0, 0]),
        ([[1.0], [1.0, 2.0]], [False, False]),
        ([[1.0], 2], [False, False]),
        ([["a"], ["b"]], [False, False]),
        ({}, []),
    ],
)
def test_replies_that_are_no_answers_are_refused(answers: Any, withheld: Any) -> None:
    with pytest.raises(InvalidInput, match="reply"):
        values_of(answers, withheld, 2)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5))
def test_numbers_travel_to_the_last_bit(numbers: list[float]) -> None:
    cells, _ = json_cells(np.array([numbers]))
    assert np.array(json.loads(json_bytes(cells))).tobytes() == np.array([numbers]).tobytes()
