"""Lattices: neighbours lie in touching cells, maxima and hops against brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.grids.lattice import MOST_CELLS, Lattice, cells_along

SMALL = {
    "exponent": 0,
    "lower": (0, -3),
    "shape": (4, 3),
    "side": 2,
    "reach": 1,
    "coordinates": (0, 2),
    "dimension": 3,
}


def indices(lattice: Lattice, points) -> np.ndarray:
    return np.stack(np.unravel_index(lattice.cells(points), lattice.shape), axis=1)


@settings(max_examples=200, deadline=None)
@given(
    radius=st.floats(1e-6, 1e6),
    reach=st.integers(1, 4),
    seed=st.integers(0, 2**32 - 1),
)
def test_neighbours_lie_in_touching_cells(radius, reach, seed) -> None:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(50, 2)) * radius * 5
    lattice = Lattice.over(points, radius=radius, tail=0.1, reach=reach)
    assert lattice.covers(radius)
    step = rng.choice([-1.0, 0.0, 1.0, 0.999], size=points.shape) * radius
    # only steps that stay within the radius in exact arithmetic count
    other = points + step
    within = np.abs(other - points).max(axis=1) <= radius * (1 - 2.0**-40)
    apart = np.abs(indices(lattice, points) - indices(lattice, other)).max(axis=1)
    assert apart[within].max(initial=0) <= reach


def test_the_least_side_is_needed() -> None:
    """With a side one step smaller some pair within the radius skips a cell."""
    lattice = Lattice(**{**SMALL, "lower": (0, 0), "side": 3, "shape": (9, 9)})
    assert lattice.covers(2.0)
    assert not lattice.covers(2.5)
    narrow = Lattice(**{**SMALL, "lower": (0, 0), "side": 2, "shape": (9, 9)})
    pair = np.array([[1.49, 0, 0], [3.51, 0, 0]])  # 2.02 apart, 1 and 4 after rounding
    assert np.ptp(indices(narrow, pair)[:, 0]) == 2
    assert not narrow.covers(2.02)


def test_points_outside_count_for_the_outermost_cells() -> None:
    lattice = Lattice(**SMALL)
    far = [[-1e300, 0.0, 1e300], [1e308, 5.0, -1e308], [-0.0, 1.0, -3.0]]
    assert indices(lattice, far).tolist() == [[0, 2], [3, 0], [0, 0]]


def test_centres_lie_in_their_cells() -> None:
    lattice = Lattice.over(
        np.random.default_rng(0).normal(size=(100, 3)), radius=0.3, tail=0.0, coordinates=(0, 2)
    )
    points = np.zeros((lattice.size, 3))
    points[:, lattice.coordinates] = lattice.center
    assert lattice.cells(points).tolist() == list(range(lattice.size))


@pytest.mark.parametrize("reach", [1, 3])
def test_cells_are_counted_along_each_coordinate_before_there_is_a_lattice(reach) -> None:
    points = np.random.default_rng(0).normal(size=(100, 3)) * [1.0, 1e-3, 7.0]
    along = cells_along(points, radius=0.3, tail=0.01, reach=reach)
    for used in ((0,), (1, 2), (0, 1, 2)):
        made = Lattice.over(points, radius=0.3, tail=0.01, reach=reach, coordinates=used)
        assert made.shape == tuple(along[place] for place in used)
    assert math.prod(cells_along(points, radius=1e-6, tail=0.0)) > MOST_CELLS


@pytest.mark.parametrize("shape", [(5,), (3, 4), (1, 6), (2, 3, 4)])
@pytest.mark.parametrize("reach", [1, 2, 5])
def test_maxima_and_hops_are_those_of_brute_force(shape, reach) -> None:
    rng = np.random.default_rng(0)
    axes = tuple(range(len(shape)))
    lattice = Lattice(
        exponent=0,
        lower=(0,) * len(shape),
        shape=shape,
        side=1,
        reach=reach,
        coordinates=axes,
        dimension=len(shape),
    )
    index = np.stack(np.unravel_index(np.arange(lattice.size), shape), axis=1)
    apart = np.abs(index[:, None] - index[None]).max(axis=2)
    values = rng.integers(0, 1000, lattice.size)
    touching = apart <= reach
    expected = np.where(touching, values[None], -1).max(axis=1)
    assert np.array_equal(lattice.touching_maximum(values), expected)
    marked = rng.random(lattice.size) < 0.2
    marked[0] = True
    hops = np.where(marked[None], -(-apart // reach), 99).min(axis=1)
    for most in (1, 2, 9):
        assert np.array_equal(lattice.hops(marked, most=most), np.minimum(hops, most))
