"""Bounds over a public partition: the cells cover the box, values against brute force over
activation patterns, and regions that end on common faces.
"""

from __future__ import annotations

import brute_force
import numpy as np
import pytest
from few_cells import FewCells
from test_exact import OUTPUTS, chain

from reticent.core import Box, Norm
from reticent.core.errors import UnsupportedNetwork, UnsupportedNorm
from reticent.lipschitz import CellBound, LayeredBound, LevelTest
from reticent.networks import Activation, ActivationKind, Affine, Network, affine_chain

HALF = 2.0


def bounded(network, output="l1", kind=FewCells):
    return kind(
        network,
        domain=Box.cube(network.input_dimension, HALF),
        input_norm=Norm.LINF,
        output=OUTPUTS[output],
    )


def cell_ends(bound):
    """The ends of the cells, in the units of the domain."""
    return bound._lower * bound.input_step, bound._upper * bound.input_step


class Certain(FewCells):
    """As many nodes as a search takes."""

    kind, cells, nodes = "certain", 6, 10**6


@pytest.mark.parametrize(
    ("widths", "output"), [((2, 4, 4, 2), "l1"), ((3, 4, 2, 2), "linf"), ((2, 5, 2), "spread")]
)
def test_cells_have_their_exact_constants(widths, output):
    network = chain(np.random.default_rng(0), widths, whole=True)
    bound = bounded(network, output, Certain)
    exact = [
        brute_force.lipschitz(network, lower, upper, output)
        for lower, upper in zip(*cell_ends(bound), strict=True)
    ]
    assert len(exact) == Certain.cells
    assert bound._values == pytest.approx(exact, rel=1e-5, abs=1e-9)


def test_a_search_that_is_stopped_leaves_a_bound():
    class Hasty(FewCells):
        kind, cells, nodes = "hasty", 4, 1

    rng = np.random.default_rng(1)
    loose = 0
    for _ in range(3):
        network = chain(rng, (2, 6, 4, 2))
        bound = bounded(network, kind=Hasty)
        for lower, upper, value in zip(*cell_ends(bound), bound._values, strict=True):
            exact = brute_force.lipschitz(network, lower, upper, "l1")
            assert value >= exact * (1 - 1e-9)
            loose += value > exact * 1.001
    assert loose > 0  # else nothing was stopped


def test_cells_cover_the_box_and_meet_in_faces():
    bound = bounded(chain(np.random.default_rng(2), (3, 8, 6, 2)))
    lower, upper = bound._lower, bound._upper
    whole_lower, whole_upper = bound._grid_domain
    assert ((lower >= whole_lower) & (upper <= whole_upper) & (lower < upper)).all()
    assert np.prod(upper - lower, axis=1).sum() == pytest.approx(np.prod(whole_upper - whole_lower))
    points = np.random.default_rng(3).uniform(whole_lower, whole_upper, size=(2000, 3))
    inside = ((points[:, None] >= lower) & (points[:, None] <= upper)).all(axis=2)
    assert (inside.sum(axis=1) == 1).all()
    corners = np.unique(lower, axis=0)
    touched = ((corners[:, None] >= lower) & (corners[:, None] <= upper)).all(axis=2).sum(axis=1)
    assert (touched >= 1).all()
    assert touched.max() > 1


def test_a_region_that_ends_on_a_face_touches_both_cells():
    """The slope is 0 up to 0 and 7 behind it; a point at 0 is at the kink."""
    network = affine_chain([[[1.0]], [[7.0]]], [[0.0], [0.0]])

    class Two(FewCells):
        kind, cells = "two", 2

    bound = bounded(network, kind=Two)
    assert bound._values == pytest.approx([7.0, 7.0])  # both closed cells hold the kink
    four = bounded(network)
    ends = four.bound([[-1.0], [-0.5], [0.0], [1.0]], [0.25, 0.5, 0.0, 0.25])
    assert ends == pytest.approx([0.0, 7.0, 7.0, 7.0])


def nested(rng, bound, count):
    """Balls in whole steps, and others in them, with ends on faces of cells or beside them."""
    d = bound.domain.dimension
    faces = np.unique(np.concatenate([bound._lower, bound._upper]))
    edge = bound._grid_domain[1][0]
    lower = np.clip(rng.choice(faces, (count, d)) + rng.integers(-1, 2, (count, d)), -edge, edge)
    radius = np.floor(rng.choice([0.0, 0.1, 1.0], count) * rng.random(count) * edge)
    centers = np.clip(lower + radius[:, None], -edge, edge)
    shift = np.trunc(rng.uniform(-1, 1, (count, d)) * radius[:, None])
    inner = np.clip(centers + shift, -edge, edge)
    left = radius - np.abs(inner - centers).max(axis=1)
    return centers, radius, inner, np.where(rng.random(count) < 0.5, left, np.floor(left / 2))


@pytest.mark.parametrize("widths", [(2, 6, 3), (3, 6, 5, 2)])
def test_isotone_on_faces(widths):
    rng = np.random.default_rng(4)
    bound = bounded(chain(rng, widths))
    centers, radii, inner, left = nested(rng, bound, 3000)
    over = [
        bound._over_cells(bound.region_on_grid(*balls))
        for balls in ((centers, radii), (inner, left))
    ]
    assert (over[1] <= over[0]).all()
    assert (over[1] < over[0]).mean() > 0.02
    some = slice(0, 60)
    values = [
        bound.bound_over(bound.region_on_grid(*balls))
        for balls in ((centers[some], radii[some]), (inner[some], left[some]))
    ]
    assert (values[1] <= values[0]).all()


def test_sound_over_regions_and_never_above_the_direct_bound():
    rng = np.random.default_rng(5)
    network = chain(rng, (2, 6, 5, 2))
    bound = bounded(network)
    direct = LayeredBound(network, domain=bound.domain, input_norm=Norm.LINF, output=bound.output)
    points, radii = rng.uniform(-HALF, HALF, (25, 2)), rng.choice([0.05, 0.3, 1.0], 25)
    found, other = bound.bound(points, radii), direct.bound(points, radii)
    exact = [
        brute_force.lipschitz(network, np.maximum(x - r, -HALF), np.minimum(x + r, HALF), "l1")
        for x, r in zip(points, radii, strict=True)
    ]
    assert (found >= np.array(exact) * (1 - 1e-9)).all()
    assert (found <= other).all()
    assert (found < 0.98 * other).mean() > 0.1
    region = bound.region(points, radii)
    for limit in np.quantile(found, [0.1, 0.5, 0.9]):
        assert (bound.at_most(region, limit) == (found <= limit)).all()


def test_neighbours_have_levels_that_differ_by_at_most_one():
    rng = np.random.default_rng(6)
    bound = bounded(chain(rng, (2, 6, 5, 2)))
    radius = 0.1
    points = rng.uniform(-HALF, HALF, (400, 2))
    moved = np.clip(points + rng.choice([-radius, radius], points.shape), -HALF, HALF)
    test = LevelTest(bound, float(np.median(bound._values)), radius, 8)
    first, second = test.levels(points), test.levels(moved)
    assert np.abs(first - second).max() == 1
    assert len(np.unique(first)) > 3


def test_flat_networks_have_few_cells():
    """A cell that is flat is not cut, and one that is a grid step wide cannot be."""
    flat = affine_chain([[[1.0]], [[3.0]]], [[-10.0], [0.0]])
    bound = bounded(flat)
    assert bound._values.max() == 0
    assert len(bound._values) == 1


def test_what_exact_search_does_not_cover_is_refused():
    rng = np.random.default_rng(7)
    network = chain(rng, (2, 4, 2))
    box = Box.cube(2, HALF)
    with pytest.raises(UnsupportedNorm, match="cells: input_norm=l2; expected linf"):
        CellBound(network, domain=box, input_norm=Norm.L2, output=Norm.L1)
    with pytest.raises(UnsupportedNorm):
        CellBound(network, domain=box, input_norm=Norm.LINF, output=Norm.L2)
    layers = (Affine(np.eye(2), np.zeros(2)), Activation(ActivationKind.TANH))
    smooth = Network((*layers, Affine(np.eye(2), np.zeros(2))), (2,))
    with pytest.raises(UnsupportedNetwork):
        CellBound(smooth, domain=box, input_norm=Norm.LINF, output=Norm.L1)
