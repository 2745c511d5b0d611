"""Whole numbers: exact, from each row alone, against Python's integers and decimals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.core.errors import InvalidParameter
from reticent.grids.whole_numbers import (
    clipped,
    exact_product,
    exponential,
    lengths,
    of_length,
    softmax,
)

rows_of_integers = st.lists(
    st.lists(st.integers(-(2**45), 2**45), min_size=3, max_size=3), min_size=1, max_size=5
)


def exact_length(row: np.ndarray) -> int:
    """The square of the norm, in Python's integers."""
    return sum(int(entry) ** 2 for entry in row)


def test_products_are_exact_and_the_same_in_any_batch() -> None:
    rng = np.random.default_rng(0)
    left = rng.integers(-(2**20), 2**20, (300, 50)).astype(np.float64)
    right = rng.integers(-(2**20), 2**20, (50, 7)).astype(np.float64)
    found = exact_product(left, right, bound=50 * 2.0**40)
    by_hand = [
        [sum(int(a) * int(b) for a, b in zip(row, column, strict=True)) for column in right.T]
        for row in left[:5]
    ]
    assert found[:5].astype(int).tolist() == by_hand
    alone = np.concatenate([exact_product(row[None], right, bound=50 * 2.0**40) for row in left])
    assert np.array_equal(alone, found)


def test_sums_that_could_be_inexact_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="at most 2\\*\\*52"):
        exact_product(np.ones((1, 1)), np.ones((1, 1)), bound=2.0**53)


@given(rows_of_integers)
def test_lengths_are_never_too_short(rows: list[list[int]]) -> None:
    array = np.array(rows, dtype=np.float64)
    for found, row in zip(lengths(array), array, strict=True):
        true = exact_length(row)
        assert math.isqrt(true) <= found * (1 + 2**-50)
        assert found <= math.sqrt(true) * 1.001 + 1e-9


@given(rows_of_integers, st.floats(1.0, 2.0**40))
def test_cut_rows_are_whole_and_within_the_bound(rows: list[list[int]], bound: float) -> None:
    array = np.array(rows, dtype=np.float64)
    cut = clipped(array, bound)
    for before, after in zip(array, cut, strict=True):
        assert np.array_equal(after, np.rint(after))
        assert exact_length(after) <= bound * bound * (1 + 2**-45)
        if exact_length(before) * 1.01 <= bound * bound:
            assert np.array_equal(before, after)


def test_a_row_is_cut_alone_as_in_a_batch() -> None:
    rng = np.random.default_rng(1)
    rows = np.rint(rng.normal(size=(200, 40)) * 2.0 ** rng.uniform(0, 40, (200, 1)))
    together = clipped(rows, 2.0**20)
    assert np.array_equal(together, np.concatenate([clipped(row[None], 2.0**20) for row in rows]))
    assert np.array_equal(together[::-1], clipped(rows[::-1], 2.0**20))


def test_rows_are_brought_to_one_length() -> None:
    rows = np.array([[3.0, 4.0], [0.0, 0.0], [2.0**40, 1.0]])
    found = of_length(rows, 1000.0)
    assert found.tolist() == [[599, 799], [0, 0], [999, 0]]


def test_exponentials_are_right_and_do_not_depend_on_their_place() -> None:
    values = np.concatenate([np.linspace(-700, 0, 5001), [-1e308, -750.0, -1e-300]])
    found = exponential(values)
    expected = np.array([math.exp(max(value, -700.0)) for value in values])
    assert np.abs(found / expected - 1).max() < 2e-15
    for start in (1, 3, 7):
        assert np.array_equal(exponential(values[start:]), found[start:])
    assert np.array_equal(exponential(values[::2]), found[::2])


def test_softmax_of_a_row_is_the_same_alone() -> None:
    logits = np.random.default_rng(2).normal(size=(333, 11)) * 10
    together = softmax(logits)
    assert np.array_equal(together, np.concatenate([softmax(row[None]) for row in logits]))
    assert np.abs(together.sum(axis=1) - 1).max() < 1e-15
    assert softmax(np.array([[1e300, -1e300]])).tolist() == [[1.0, pytest.approx(0, abs=1e-300)]]
