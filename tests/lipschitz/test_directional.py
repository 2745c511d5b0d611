"""Relaxed and attained derivatives of single pairs, and the table of them: against brute force."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from reticent.core import Box, Norm
from reticent.core.arrays import Array
from reticent.grids.arithmetic import Interval, euclidean_norm
from reticent.grids.rounding import fractions
from reticent.lipschitz import LayeredBound
from reticent.lipschitz.bounds import Region, combine
from reticent.lipschitz.direction_table import DirectionTable, first_and_last
from reticent.lipschitz.directional import FREE, Rows, Slopes, largest, ranges, relaxed, separate
from reticent.lipschitz.layered import directions_of
from reticent.lipschitz.slopes import scaled_by
from reticent.networks import affine_chain


def case(rng, *widths, rows=6):
    """Slopes with a mix of on, off and unstable neurons, and pairs, of a chain with these hidden
    widths.
    """
    states = [rng.choice(3, size=width, p=[0.2, 0.2, 0.6]) for width in widths]
    slopes = Slopes(tuple(s == 1 for s in states), tuple(s == 2 for s in states))
    weights = tuple(
        rng.normal(size=(after, before)) for before, after in itertools.pairwise(widths)
    )
    functionals, along = rng.normal(size=(rows, widths[-1])), rng.normal(size=(rows, widths[0]))
    return weights, slopes, Rows(functionals, along, relaxed(ranges(along, weights, slopes)))


def slope_choices(slopes):
    """Every choice of slopes 0 or 1, layer by layer."""
    options = [
        [
            (1.0,) if on else (0.0, 1.0) if unstable else (0.0,)
            for on, unstable in zip(*state, strict=True)
        ]
        for state in zip(slopes.on, slopes.unstable, strict=True)
    ]
    return itertools.product(*(itertools.product(*layer) for layer in options))


def everything(weights, slopes, functional, along):
    """The largest derivative over every choice of slopes, one by one."""
    best = -np.inf
    for chosen in slope_choices(slopes):
        carried = along * np.array(chosen[0])
        for weight, slope in zip(weights, chosen[1:], strict=True):
            carried = (weight @ carried) * np.array(slope)
        best = max(best, float(functional @ carried))
    return best


@pytest.mark.parametrize("widths", [(5,), (4, 4), (3, 3, 3)])
def test_brute_force_lies_between_attained_and_relaxed(widths):
    rng = np.random.default_rng(0)
    loss = []
    for _ in range(20):
        weights, slopes, rows = case(rng, *widths)
        found = largest(rows, weights, slopes, np.full((6, sum(widths[1:])), FREE, dtype=np.int8))
        for row in range(6):
            best = everything(weights, slopes, rows.functionals[row], rows.along[row])
            assert found.attained[row] - 1e-12 <= best <= found.value[row] + 1e-12
            assert best <= separate(rows, weights, slopes)[row] + 1e-12
            loss.append(found.value[row] - found.attained[row])
    assert (max(loss) > 0.1) == (len(widths) > 1)


def test_gaps_add_up_to_what_is_lost():
    rng = np.random.default_rng(1)
    weights, slopes, rows = case(rng, 8, 7, 6, rows=50)
    found = largest(rows, weights, slopes, np.full((50, 13), FREE, dtype=np.int8))
    assert found.gap.sum(axis=1) == pytest.approx(found.value - found.attained, abs=1e-10)
    assert (found.gap >= -1e-12).all()


def test_decided_slopes_leave_nothing_to_relax():
    rng = np.random.default_rng(2)
    weights, slopes, rows = case(rng, 5, 4, 3, rows=1)
    best = -np.inf
    for choice in itertools.product([0, 1], repeat=7):
        found = largest(rows, weights, slopes, np.array([choice], dtype=np.int8))
        assert found.value == pytest.approx(found.attained, abs=1e-12)
        assert (found.gap <= 0).all()
        best = max(best, float(found.value[0]))
    assert best == pytest.approx(
        everything(weights, slopes, rows.functionals[0], rows.along[0]), abs=1e-12
    )


def test_relaxed_value_is_the_optimum_of_the_linear_program():
    """Variables: what each neuron of both layers passes on; the second layer's lies between its
    two lines.
    """
    rng = np.random.default_rng(3)
    for _ in range(10):
        (weight,), slopes, rows = case(rng, 5, 4, rows=1)
        c, a = rows.along[0], rows.functionals[0]
        ends = [
            (min(0.0, x), max(0.0, x)) if unstable else ((x, x) if on else (0.0, 0.0))
            for x, on, unstable in zip(c, slopes.on[0], slopes.unstable[0], strict=True)
        ]
        left, right = [], []
        low, high = (part[0] for part in ranges(rows.along, (weight,), slopes)[0])
        for k in range(4):
            unit = np.eye(4)[k]
            if not slopes.unstable[1][k]:
                lines = [(float(slopes.on[1][k]), 0.0)] * 2
            else:
                top, bottom = max(high[k], 0.0), min(low[k], 0.0)
                share = top / (top - bottom)
                lines = [(share, -share * bottom), (1 - share, share * bottom)]
            for (factor, offset), sign in zip(lines, (1.0, -1.0), strict=True):
                left.append(np.concatenate([-sign * factor * weight[k], sign * unit]))
                right.append(sign * offset)
        best = linprog(
            np.concatenate([np.zeros(5), -a]),
            np.array(left),
            right,
            bounds=[*ends, *[(None, None)] * 4],
        )
        assert largest(rows, (weight,), slopes).value[0] == pytest.approx(-best.fun, abs=1e-8)


def test_more_unstable_neurons_raise_every_value():
    """Inclusion of slopes, the step from regions to real numbers: on or off to unstable, never
    the other way.
    """
    rng = np.random.default_rng(4)
    for _ in range(200):
        weights, slopes, rows = case(rng, 6, 5, 5)
        looser = Slopes(
            slopes.on, tuple(part | (rng.random(part.shape) < 0.3) for part in slopes.unstable)
        )
        looser = Slopes(
            tuple(on & ~u for on, u in zip(looser.on, looser.unstable, strict=True)),
            looser.unstable,
        )
        wide = Rows(rows.functionals, rows.along, relaxed(ranges(rows.along, weights, looser)))
        assert (
            largest(wide, weights, looser).value >= largest(rows, weights, slopes).value - 1e-12
        ).all()
        assert (separate(wide, weights, looser) >= separate(rows, weights, slopes) - 1e-12).all()


def test_fractions_agree_and_stay_fractions():
    rng = np.random.default_rng(5)
    weights, slopes, rows = case(rng, 5, 4, 3, rows=4)
    exact_weights = tuple(fractions(weight) for weight in weights)
    along = fractions(rows.along)
    exact = Rows(fractions(rows.functionals), along, relaxed(ranges(along, exact_weights, slopes)))
    apart = separate(exact, exact_weights, slopes)
    assert all(isinstance(value, Fraction | int) for value in apart)
    assert apart.astype(float) == pytest.approx(separate(rows, weights, slopes), abs=1e-12)
    choices = rng.integers(-1, 2, size=(4, 7)).astype(np.int8)
    for asked in (None, choices):
        plain, found = (
            largest(rows, weights, slopes, asked),
            largest(exact, exact_weights, slopes, asked),
        )
        for name in ("value", "attained", "gap"):
            values = getattr(found, name)
            assert all(isinstance(value, Fraction | int) for value in values.ravel())
            assert values.astype(float) == pytest.approx(getattr(plain, name), abs=1e-12)


def test_a_layer_that_is_off_is_silent():
    on, off = np.array([True, False]), np.array([False, False])
    assert not Slopes((on, on), (off, off)).silent
    assert not Slopes((on, off), (off, on)).silent
    assert Slopes((on, off), (on, off)).silent


OUTPUTS = [("l2", 3), ("l2", 1), ("l1", 13)]  # l1 with more than 12 outputs adds up functionals


def one_hidden_layer(
    seed: int, output: str, outputs: int, norm: str, hidden: int = 7
) -> LayeredBound:
    """One network's bound by its table."""
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(-3, 4)
    first = rng.normal(size=(hidden, 4)) * np.where(rng.random((hidden, 1)) < 0.2, 1e-6, scale)
    last = rng.normal(size=(outputs, hidden))
    last[:, rng.integers(hidden)] = 0.0
    network = affine_chain([first, last], [scale * rng.normal(size=hidden), np.zeros(outputs)])
    domain = Box.cube(4, 2.0)
    bound = LayeredBound(network, domain=domain, input_norm=Norm(norm), output=Norm(output))
    assert isinstance(bound._table, DirectionTable)
    return bound


def by_arrays(bound: LayeredBound, region: Region) -> Array:
    """The bound by the arrays that the table stands for."""
    first, last = (layer.dense() for layer in bound.network.linear_layers())
    rows, how = bound.functionals.rows @ last, bound.functionals.combine
    ways = directions_of(bound.input_norm, 4)
    along, exact = first_and_last(first, rows, ways, bound._states(bound._whole_domain()))
    states = bound._states(region)
    each = Interval(states.lower[:, None], states.upper[:, None], states.unit)
    derivative = exact(scaled_by(along, each, np.inf))
    magnitude, unit = derivative.magnitude(), derivative.unit
    if how == "l2":
        found = euclidean_norm(magnitude, unit, bound._table.largest_derivative)
    else:
        flat = magnitude.reshape(-1, magnitude.shape[-1]) * unit
        found = combine(flat, "sum").reshape(magnitude.shape[:2])
    return np.minimum(found.max(axis=1), bound.ceiling)


@pytest.mark.parametrize(("output", "outputs"), OUTPUTS)
@pytest.mark.parametrize("norm", ["linf", "l1"])
@given(seed=st.integers(0, 2**32 - 1))
def test_bounds_and_answers_are_those_of_the_arrays(output, outputs, norm, seed):
    table = one_hidden_layer(seed, output, outputs, norm)
    rng = np.random.default_rng(seed)
    points = rng.uniform(-2.5, 2.5, size=(9, 4))
    radii = np.array([0.0, 1e-6, 0.03, 0.1, 0.3, 0.7, 1.5, 4.0, np.inf])
    region = table.region(table.domain.clip(points), radii)
    expected = by_arrays(table, region)
    assert np.array_equal(table.bound(points, radii), expected)
    assert np.array_equal(
        np.concatenate([table.bound(points[[i]], radii[[i]]) for i in range(9)]), expected
    )
    for limit in (
        *expected,
        np.nextafter(expected[4], 0),
        0.5 * expected[4],
    ):  # a bound is at most itself
        assert np.array_equal(table.at_most(region, limit), expected <= limit)


def test_sums_stay_exact_in_float64():
    table = one_hidden_layer(1, "l2", 5, "linf", hidden=40)
    for center, spread in zip(table._table.centers, table._table.spreads, strict=True):
        for part in (center, spread):
            assert np.array_equal(part, np.round(part))
        on, unstable = np.split(np.abs(center) + spread, 2)
        assert 2 * np.maximum(on, unstable).sum(axis=0).max() < 2.0**53
