"""Exactness on dyadic grids, checked against rational arithmetic."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.core.errors import CertificationFailed
from reticent.grids.arithmetic import (
    ExactLinear,
    Interval,
    around,
    euclidean_norm,
    sum_of_magnitudes,
    unit_of_sum,
)
from reticent.networks import Affine, Convolution

reals = st.floats(-1e6, 1e6, allow_nan=False).filter(lambda value: value == 0 or abs(value) > 1e-6)


@given(st.lists(reals, min_size=1, max_size=5), st.integers(-30, 10))
def test_around_contains_and_is_narrow(values, exponent):
    unit = 2.0**exponent
    interval = around(np.array(values), unit)
    for value, low, high in zip(values, interval.lower, interval.upper, strict=True):
        assert Fraction(low) * Fraction(unit) <= Fraction(value) <= Fraction(high) * Fraction(unit)
        assert high - low <= 1


@given(st.integers(-(2**50), 2**50), st.integers(0, 2**50), st.integers(-20, 20))
def test_another_grid_rounds_outward(low, width, exponent):
    interval = Interval(np.array([float(low)]), np.array([float(min(low + width, 2**51))]), 1.0)
    moved = interval.on_grid(2.0**exponent)
    unit = Fraction(2) ** exponent
    assert Fraction(moved.lower[0]) * unit <= Fraction(interval.lower[0])
    assert Fraction(moved.upper[0]) * unit >= Fraction(interval.upper[0])
    assert Fraction(interval.lower[0]) - Fraction(moved.lower[0]) * unit < max(unit, 1)


@settings(max_examples=60)
@given(st.data())
def test_linear_maps_are_exact_to_the_last_bit(data):
    """The computed ends are those of exact rational arithmetic with the rounded weights, and
    contain W x + b.
    """
    outputs, inputs = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4))
    weight = np.array(
        data.draw(st.lists(reals, min_size=inputs * outputs, max_size=inputs * outputs))
    ).reshape(outputs, inputs)
    bias = np.array(data.draw(st.lists(reals, min_size=outputs, max_size=outputs)))
    largest = data.draw(st.floats(1e-3, 1e3))
    transposed = data.draw(st.booleans())
    exact = ExactLinear.build(Affine(weight, bias), largest, transposed=transposed)
    size = outputs if transposed else inputs
    ends = np.sort(
        np.array(
            data.draw(st.lists(st.floats(-1, 1), min_size=2 * size, max_size=2 * size))
        ).reshape(2, size),
        axis=0,
    )
    box = Interval(
        around(ends[:1] * largest, exact.input_unit).lower,
        around(ends[1:] * largest, exact.input_unit).upper,
        exact.input_unit,
    )
    result = exact(box)
    matrix = exact.weight.T if transposed else exact.weight
    for row in range(len(matrix)):
        at_low = np.where(matrix[row] > 0, box.lower[0], box.upper[0])
        at_high = np.where(matrix[row] > 0, box.upper[0], box.lower[0])
        low, high = (
            sum(Fraction(w) * Fraction(x) for w, x in zip(matrix[row], ends_met, strict=True))
            for ends_met in (at_low, at_high)
        )
        slack = Fraction(exact.slack)
        assert Fraction(result.lower[0, row]) == low + Fraction(exact.bias.lower[row]) - slack
        assert Fraction(result.upper[0, row]) == high + Fraction(exact.bias.upper[row]) + slack
        true = (weight.T if transposed else weight)[row]
        middle = [
            Fraction(float(x))
            for x in np.clip(ends.mean(axis=0) * largest, ends[0] * largest, ends[1] * largest)
        ]
        value = sum(
            (Fraction(float(w)) * x for w, x in zip(true, middle, strict=True)), Fraction(0)
        )
        value += 0 if transposed else Fraction(float(bias[row]))
        unit = Fraction(exact.output_unit)
        assert (
            Fraction(result.lower[0, row]) * unit <= value <= Fraction(result.upper[0, row]) * unit
        )


@pytest.mark.parametrize(
    ("stride", "padding", "groups"), [((1, 1), (0, 0), 1), ((2, 1), (1, 2), 2), ((3, 2), (0, 1), 1)]
)
@pytest.mark.parametrize("transposed", [False, True])
def test_convolutions_are_exact_in_any_batch(stride, padding, groups, transposed):
    rng = np.random.default_rng(0)
    weight, shape = rng.normal(size=(4, 4 // groups, 3, 2)), (4, 6, 5)
    layer = Convolution(
        weight, rng.normal(size=4), input_shape=shape, stride=stride, padding=padding, groups=groups
    )
    exact = ExactLinear.build(layer, 2.0, transposed=transposed)
    size = layer.outputs if transposed else layer.inputs
    ends = np.sort(rng.uniform(-2, 2, size=(2, 50, size)), axis=0)
    box = Interval(
        around(ends[0], exact.input_unit).lower,
        around(ends[1], exact.input_unit).upper,
        exact.input_unit,
    )
    result = exact(box)
    dense = layer.dense()
    # The same map as a matrix of whole numbers, in Python integers.
    matrix = Affine(dense, layer.bias)
    as_matrix = np.round(matrix.weight / (exact.output_unit / exact.input_unit)).astype(object)
    as_matrix = as_matrix.T if transposed else as_matrix
    low, high = (np.vectorize(int, otypes=[object])(end[:3]) for end in (box.lower, box.upper))
    positive, negative = np.maximum(as_matrix, 0), np.minimum(as_matrix, 0)
    expected = low @ positive.T + high @ negative.T
    offset = (exact.bias.lower - exact.slack).astype(object)
    assert (result.lower[:3].astype(object) == expected + offset).all()
    alone = exact(Interval(box.lower[[7]], box.upper[[7]], box.unit))
    assert np.array_equal(alone.lower[0], result.lower[7])
    assert np.array_equal(alone.upper[0], result.upper[7])


def test_order_of_summation_cannot_matter():
    rng = np.random.default_rng(1)
    weight = rng.normal(size=(3, 200))
    exact = ExactLinear.build(Affine(weight, np.zeros(3)), 1.0)
    shuffled = rng.permutation(200)
    again = ExactLinear.build(Affine(weight[:, shuffled], np.zeros(3)), 1.0)
    points = np.round(rng.uniform(-1, 1, size=(100, 200)) / exact.input_unit)
    first = exact(Interval(points, points, exact.input_unit))
    second = again(Interval(points[:, shuffled], points[:, shuffled], exact.input_unit))
    assert np.array_equal(first.lower, second.lower)
    assert np.array_equal(first.upper, second.upper)


@pytest.mark.parametrize(
    ("weight", "bias", "largest", "message"),
    [
        (1e-100, 0.0, 1.0, "beyond 2..-300 to 2..300"),
        (1e100, 0.0, 1.0, "beyond 2..-300 to 2..300"),
        (1.0, 1e100, 1.0, "beyond 2..-300 to 2..300"),
        (1.0, 0.0, 1e100, "beyond 2..-300 to 2..300"),
        (5e-324, 0.0, 1.0, "beyond 2..-300 to 2..300"),
    ],
)
def test_magnitudes_that_would_leave_float64_are_refused(weight, bias, largest, message):
    with pytest.raises(CertificationFailed, match=message):
        ExactLinear.build(Affine(np.full((1, 2), weight), np.array([bias])), largest)


def test_a_layer_too_wide_to_be_exact_is_refused():
    with pytest.raises(CertificationFailed, match="leaves too few exact bits"):
        ExactLinear.build(Affine(np.ones((1, 2**15)), np.zeros(1)), 1.0)


@given(st.lists(st.integers(0, 2**51), min_size=1, max_size=20), st.integers(-40, 5))
def test_sums_and_euclidean_norms_are_upper_bounds(entries, exponent):
    unit = 2.0**exponent
    row = np.array([entries], dtype=np.float64)
    total = Fraction(float(sum_of_magnitudes(Interval(-row, row, unit))[0]))
    assert (
        sum(entries) * Fraction(unit)
        <= total
        <= (sum(entries) + 2 * len(entries) * 64) * Fraction(unit)
    )
    norm = Fraction(float(euclidean_norm(row, unit, float(row.max()) * unit)[0]))
    assert norm >= isqrt(sum(int(e) ** 2 for e in entries)) * Fraction(unit)
    assert norm <= Fraction(1.0001) * (isqrt(sum(int(e) ** 2 for e in entries)) + 1) * Fraction(
        unit
    )


def test_summands_on_far_apart_grids_keep_their_digits():
    whole, fine = (
        Interval(np.array([-1.0]), np.array([1.0]), 1.0),
        Interval(np.array([3.0]), np.array([5.0]), 2.0**-30),
    )
    total = whole.plus(fine, unit_of_sum(whole, fine))
    assert total.lower[0] * total.unit == -1.0 + 3 * 2.0**-30
    assert total.upper[0] * total.unit == 1.0 + 5 * 2.0**-30
    tiny = Interval(np.array([3.0]), np.array([5.0]), 2.0**-300)
    coarse = whole.plus(tiny, unit_of_sum(whole, tiny))
    assert coarse.unit == 2.0**-50
    assert coarse.upper[0] * coarse.unit == 1.0 + 2.0**-50
