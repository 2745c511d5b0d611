"""Ranges of activations and slopes: sound against high-precision values, isotone at every edge."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.grids.arithmetic import Interval
from reticent.lipschitz.slopes import RangeTable, SmoothActivation, rectify, scaled_by
from reticent.networks import ActivationKind

SMOOTH = [kind for kind in ActivationKind if kind is not ActivationKind.RELU]


def precise(kind, x):
    """The activation and its slope at ``x``, to 30 digits."""
    half = mpmath.mpf(1) / 2
    if kind is ActivationKind.TANH:
        return mpmath.tanh(x), mpmath.sech(x) ** 2
    sigmoid = 1 / (1 + mpmath.exp(-x))
    if kind is ActivationKind.SIGMOID:
        return sigmoid, sigmoid * (1 - sigmoid)
    if kind is ActivationKind.SOFTPLUS:
        return mpmath.log1p(mpmath.exp(x)), sigmoid
    cdf = half * mpmath.erfc(-x / mpmath.sqrt(2))
    return x * cdf, cdf + x * mpmath.npdf(x)


@pytest.mark.parametrize("kind", SMOOTH)
@pytest.mark.parametrize("largest", [1e-12, 0.01, 1.0, 7.3, 40.0, 1e6])
def test_ranges_contain_values_and_slopes(kind, largest):
    table = SmoothActivation.build(kind, largest)
    rng = np.random.default_rng(0)
    unit = 2.0 ** np.floor(np.log2(largest) - 40)
    ends = np.sort(
        rng.uniform(-largest, largest, size=(2, 60)) * rng.choice([1.0, 1e-3], size=60), axis=0
    )
    ends[:, 0] = -0.75179, -0.75178
    ends[:, 1] = 1.4142, 1.4143
    ends = np.clip(ends, -largest, largest)
    ends[1, ::4] = np.minimum(ends[0, ::4] + 2 * unit, largest)
    boxes = Interval(np.floor(ends[0] / unit), np.floor(ends[1] / unit), unit)
    values, slopes = table.ranges(boxes)
    assert (values.lower <= values.upper).all()
    assert (slopes.lower <= slopes.upper).all()
    with mpmath.workdps(30):
        for k in range(60):
            for part in (0.0, 0.3, 1.0):
                x = (
                    mpmath.mpf(float(boxes.lower[k])) * unit * (1 - part)
                    + mpmath.mpf(float(boxes.upper[k])) * unit * part
                )
                value, slope = precise(kind, x)
                assert values.lower[k] * values.unit <= value <= values.upper[k] * values.unit
                assert slopes.lower[k] * slopes.unit <= slope <= slopes.upper[k] * slopes.unit


@pytest.mark.parametrize("kind", SMOOTH)
def test_ranges_are_isotone_and_narrow(kind):
    table = SmoothActivation.build(kind, 8.0)
    rng = np.random.default_rng(1)
    unit = table.cell / 4  # many ends fall on edges between cells
    lower = rng.integers(-8 / unit, 8 / unit, size=20_000).astype(float)
    upper = np.minimum(
        lower + rng.integers(0, 40, size=20_000) * rng.choice([1, 100], size=20_000), 8 / unit
    )
    inner = np.sort(rng.integers(lower, upper + 1, size=(2, 20_000)), axis=0).astype(float)
    inner[:, ::5] = upper[::5]
    inner[:, 1::5] = lower[1::5]
    for outside, inside in zip(
        table.ranges(Interval(lower, upper, unit)),
        table.ranges(Interval(inner[0], inner[1], unit)),
        strict=True,
    ):
        assert (outside.lower <= inside.lower).all()
        assert (outside.upper >= inside.upper).all()
    points = table.ranges(Interval(lower, lower, unit))
    for interval, spread in zip(points, (1.2 * table.cell, 1.1 * table.cell), strict=True):
        assert ((interval.upper - interval.lower) * interval.unit <= spread + 1e-5).all()


@pytest.mark.parametrize("kind", SMOOTH)
def test_wide_ranges_stay_within_what_is_known_of_the_whole_line(kind):
    table = SmoothActivation.build(kind, 1e9)
    _, slopes = table.ranges(Interval(np.array([-1.0]), np.array([1.0]), 1.0))
    assert slopes.lower[0] * slopes.unit >= -0.14
    assert slopes.upper[0] * slopes.unit <= kind.lipschitz * 1.001


def test_range_table_against_a_direct_search():
    rng = np.random.default_rng(2)
    lower = rng.normal(size=37)
    upper = lower + rng.random(37)
    table = RangeTable.build(lower, upper, 2.0**-10)
    first, last = (
        ends.reshape(-1) for ends in np.meshgrid(np.arange(37), np.arange(37), indexing="ij")
    )
    keep = first <= last
    found = table.over(first[keep], last[keep])
    for k, (i, j) in enumerate(zip(first[keep], last[keep], strict=True)):
        assert found.lower[k] == np.floor(lower[i : j + 1].min() * 2**10)
        assert found.upper[k] == np.ceil(upper[i : j + 1].max() * 2**10)


@pytest.mark.parametrize(
    ("ends", "values", "slopes"),
    [
        ((-3, -1), (0, 0), (0, 0)),
        (
            (-3, 0),
            (0, 0),
            (0, 1),
        ),  # ends at the kink: unstable, or the point 0 inside it would not be contained
        ((0, 0), (0, 0), (1, 1)),
        ((0, 2), (0, 2), (1, 1)),
        ((-1, 2), (0, 2), (0, 1)),
        ((1, 2), (1, 2), (1, 1)),
    ],
)
def test_rectify(ends, values, slopes):
    value, slope = rectify(Interval(np.array([float(ends[0])]), np.array([float(ends[1])]), 1.0))
    assert (value.lower[0], value.upper[0]) == values
    assert (slope.lower[0], slope.upper[0]) == slopes


small = st.integers(-6, 6)


@given(small, small, small, small, st.booleans())
def test_products_are_exact_ranges(a, b, c, d, relu):
    gradient = Interval(np.array([float(min(a, b))]), np.array([float(max(a, b))]), 1.0)
    low, high = sorted((c % 2, d % 2)) if relu else sorted((c, d))
    slopes = Interval(np.array([float(low)]), np.array([float(high)]), 1.0 if relu else 2.0**-20)
    product = scaled_by(gradient, slopes, 6.0)
    # Coarsened to 26 bits of the public bound, which is finer than these whole numbers.
    corners = [end * slope * slopes.unit for end in (min(a, b), max(a, b)) for slope in (low, high)]
    assert product.lower[0] * product.unit == min(corners)
    assert product.upper[0] * product.unit == max(corners)
