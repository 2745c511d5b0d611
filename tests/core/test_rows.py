"""Rows that are computed alone, and rows that are not finite."""

from __future__ import annotations

import numpy as np

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
