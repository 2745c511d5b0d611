"""Correct rounding: against fractions, whatever the error allows, and monotone."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from reticent.grids.rounding import (
    OFFSET,
    Surd,
    float_error,
    grid_point,
    rounded_up,
    steps_up,
)


def exactly_up(value: Fraction, unit: Fraction) -> Fraction:
    """The least (k + OFFSET) unit that is at least ``value``, by definition."""
    k = (value / unit - OFFSET).__ceil__()
    return (k + OFFSET) * unit


@pytest.mark.parametrize("error", [0.0, 1e-12, 2.0**-11, 0.3])
def test_rounded_up_is_the_exact_rounding_for_any_error(error):
    """Values off by up to ``error`` give the same grid points as the exact ones; many lie on or
    next to a grid point.
    """
    rng = np.random.default_rng(0)
    unit = 2.0**-10
    exact = [Fraction(float(x)) for x in rng.normal(size=300)]
    exact += [
        (Fraction(int(k)) + OFFSET) * Fraction(unit) + tiny
        for k in range(-9, 9)
        for tiny in (0, Fraction(1, 10**30))
    ]
    values = np.array([float(x) for x in exact])
    moved = values + error * rng.uniform(-1, 1, size=len(values))
    result = rounded_up(moved, error + 1e-14, unit, lambda index: exact[index[0]])
    assert [Fraction(x) for x in result] == [exactly_up(x, Fraction(unit)) for x in exact]


def test_fractions_are_asked_only_where_the_error_leaves_a_choice():
    asked = []

    def exactly(index):
        asked.append(index)
        return Fraction(0.5)

    rounded_up(np.array([0.1, float(OFFSET) + 1e-9, 0.2]), 1e-6, 1.0, exactly)
    assert asked == [(1,)]


@pytest.mark.parametrize("lost", [np.inf, -np.inf, np.nan])
def test_values_that_have_left_floating_point_are_asked_for_exactly(lost):
    def closer(index):
        return np.longdouble(lost), 0.0

    for closely in (None, closer):
        result = rounded_up(np.array([lost, 0.5]), 1e-9, 1.0, lambda _: Fraction(5), closely)
        assert result.tolist() == [5 + float(OFFSET), 1 + float(OFFSET)]


def test_grid_points_are_exact():
    steps = np.array([-(2.0**40), -1.0, 0.0, 3.0, 2.0**40 + 1])
    for step, point in zip(steps, grid_point(steps, 2.0**-30), strict=True):
        assert Fraction(point) == (Fraction(step) + OFFSET) / 2**30
    assert steps_up(grid_point(steps, 1.0), 1.0).tolist() == steps.tolist()


@pytest.mark.skipif(np.finfo(np.longdouble).nmant == 52, reason="long doubles are float64 here")
def test_long_doubles_decide_what_float64_leaves_open_and_fractions_the_rest():
    """Errors of 0.3 leave every value open; a value 2**-60 above a grid point needs fractions only
    where long doubles are told to be good for 2**-50.
    """
    unit, near = 1.0, Fraction(3) + OFFSET
    exact = [near, near + Fraction(1, 2**60), near - Fraction(1, 2**60), Fraction(1, 3)]
    values = np.array([float(x) for x in exact])
    asked = []

    def closer(index):
        return np.longdouble(float(near)) + np.longdouble(float(exact[index[0]] - near)), 2.0**-61

    def exactly(index):
        asked.append(index[0])
        return exact[index[0]]

    expected = [exactly_up(x, Fraction(1)) for x in exact]
    assert [Fraction(x) for x in rounded_up(values, 0.3, unit, exactly, closer)] == expected
    assert asked == [0]
    rounded_up(values, 0.3, unit, exactly, lambda index: (closer(index)[0], 2.0**-50))
    assert asked == [0, 0, 1, 2]


@pytest.mark.parametrize("precision", ["float64", "float32", "longdouble"])
def test_float_error_covers_dot_products_that_cancel(precision):
    rng = np.random.default_rng(1)
    worst = 0.0
    for length in (1, 3, 50, 400):
        for _ in range(20):
            x, y = (rng.normal(size=length).astype(precision) for _ in range(2))
            x[length // 2 :] = -x[: length - length // 2][::-1]
            exact = sum(
                (Fraction(float(a)) * Fraction(float(b)) for a, b in zip(x, y, strict=True)),
                Fraction(0),
            )
            scale = float(np.abs(x.astype(float)) @ np.abs(y.astype(float)))
            worst = max(
                worst,
                float(abs(exact - Fraction(*(x @ y).as_integer_ratio())))
                / float_error(length, scale, precision),
            )
    assert 0 < worst < 0.1


def test_surds_round_up_like_whole_numbers_do():
    """ceil((a + sqrt(b) - c) / u) against a search for the least whole number, by squaring; many of
    the roots are whole, and some miss a whole number by 2**-80.
    """
    rng = np.random.default_rng(7)
    seen_whole = 0
    for _ in range(400):
        root = Fraction(int(rng.integers(0, 50)), int(rng.integers(1, 6)))
        nudge = Fraction(int(rng.integers(-1, 2)), 2**80)
        square = max(root**2 + nudge, Fraction(0))
        shift, unit = Fraction(int(rng.integers(-20, 20)), 4), Fraction(1, int(rng.integers(1, 9)))
        result = math.ceil((shift + Surd(Fraction(0), square)) / unit - OFFSET)

        def reaches(k, shift=shift, unit=unit, square=square):
            left = (k + OFFSET) * unit - shift
            return left >= 0 and left**2 >= square

        assert reaches(result)
        assert not reaches(result - 1)
        seen_whole += int(nudge == 0)
    assert seen_whole > 100


def test_surds_whose_root_lies_next_above_a_whole_number():
    """The root as it is found, rounded down to the denominator, is then that whole number."""
    for whole in range(1, 40):
        for square, expected in ((whole**2, whole), (whole**2 + 1, whole + 1)):
            assert math.ceil(Surd(Fraction(-3), Fraction(square))) == expected - 3
