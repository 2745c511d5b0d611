"""Rows computed alone, rows that are not finite, and codes that stand for whole rows."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reticent.core.coded_rows import CodedRows
from reticent.core.rows import each_row, finite_or_zero


def test_every_row_is_computed_alone_from_one_aligned_buffer() -> None:
    seen: list[tuple[tuple[int, ...], int]] = []

    def compute(row: np.ndarray) -> np.ndarray:
        seen.append((row.shape, row.ctypes.data))
        return np.concatenate([row, 2 * row], axis=1)

    rows = np.arange(21.0).reshape(7, 3)
    np.testing.assert_array_equal(
        each_row(compute, rows[:, ::-1]),
        np.concatenate([rows, 2 * rows], axis=1)[:, [2, 1, 0, 5, 4, 3]],
    )
    assert {shape for shape, _ in seen} == {(1, 3)}
    assert len({address for _, address in seen}) == 1
    assert seen[0][1] % 64 == 0


def test_rows_that_are_not_finite_go_to_the_origin_whole() -> None:
    rows = np.array([[1.0, np.nan], [np.inf, 2.0], [-3.0, 4.0], [-np.inf, 0.0]])
    assert finite_or_zero(rows).tolist() == [[0.0, 0.0], [0.0, 0.0], [-3.0, 4.0], [0.0, 0.0]]


def drawn(seed: int, rows: int) -> tuple[CodedRows, np.ndarray]:
    """Random coded rows of 12 coordinates, and the same in full, written one by one."""
    rng = np.random.default_rng(seed)
    places = np.array([7, 0, 3], dtype=np.int32)
    codes = np.stack(
        [rng.integers(4, 7, size=rows), rng.integers(8, 12, size=rows)], axis=1
    ).astype(np.int32)
    numbers = rng.normal(size=(rows, 3)) * (rng.random((rows, 3)) < 0.7)
    whole = np.zeros((rows, 12))
    for row in range(rows):
        for place, number in zip(places, numbers[row], strict=True):
            whole[row, place] = number
        for code in codes[row]:
            whole[row, code] = 0.75
    return CodedRows(numbers, places, codes, 0.75, 12), whole


@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 20), columns=st.integers(1, 9))
def test_products_are_those_of_whole_rows_and_of_each_row_alone(seed, rows, columns):
    coded, whole = drawn(seed, rows)
    assert np.array_equal(coded.dense(), whole)
    matrix = np.random.default_rng(seed + 1).normal(size=(12, columns))
    product = coded.times(matrix)
    exact = [
        [
            sum(Fraction(x) * Fraction(w) for x, w in zip(row, column, strict=True))
            for column in matrix.T
        ]
        for row in whole
    ]
    magnitude = np.abs(whole) @ np.abs(matrix)
    assert (np.abs(product - np.array(exact, dtype=np.float64)) <= 8 * 2.0**-53 * magnitude).all()
    assert np.array_equal(
        product, np.concatenate([coded.part(slice(i, i + 1)).times(matrix) for i in range(rows)])
    )
    assert np.array_equal(product, coded.times(np.asfortranarray(matrix)))
    assert np.array_equal(CodedRows.of(whole).dense(), whole)
