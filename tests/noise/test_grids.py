"""The public grid: rounding moves by half a step, the clip is 1-Lipschitz, powers of two are
exact.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.noise import Grid
from reticent.noise.grids import LIMIT


@given(st.floats(-1e6, 1e6), st.integers(-30, 5))
def test_rounding_moves_by_at_most_half_a_step(value: float, exponent: int) -> None:
    grid = Grid(exponent)
    point = int(grid.round(np.array([value]))[0])
    assert abs(Fraction(value) - point * Fraction(grid.step)) <= Fraction(grid.step) / 2


@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(allow_nan=False, allow_infinity=False),
)
def test_rounding_and_clip_widen_a_distance_by_at_most_one_step(
    first: float, second: float
) -> None:
    grid = Grid(-20)
    points = grid.round(np.array([first, second])).tolist()
    assert (
        abs(points[0] - points[1])
        <= abs(Fraction(first) - Fraction(second)) / Fraction(grid.step) + 1
    )


@pytest.mark.parametrize("length", [1e-250, 3.7e-9, 1.0, 2.0, 12345.6, 1e250])
def test_resolution(length: float) -> None:
    assert 2**20 <= length / Grid.finer_than(length).step < 2**21


def test_far_values_are_clipped_without_overflow() -> None:
    grid = Grid(-800)
    assert grid.round(np.array([1e300, -1e300, 1e-300])).tolist() == [LIMIT, -LIMIT, 0]
    assert grid.limit == LIMIT * grid.step


def test_sums_end_where_every_saturated_draw_lies_beyond() -> None:
    grid = Grid(0)
    ends = np.array([LIMIT, -LIMIT])
    assert (
        grid.sum(ends, np.array([2**62, -(2**62)])).tolist()
        == grid.sum(-ends, np.array([2**62, -(2**62)])).tolist()
    )
    assert grid.sum(ends, np.array([2**62 + 2**53, -(2**62) - 2**53])).tolist() == [
        2 * LIMIT,
        -2 * LIMIT,
    ]
    assert grid.sum(ends, np.array([-5, 7])).tolist() == [LIMIT - 5, 7 - LIMIT]
