"""Every bound on every family and norm pair: sound, isotone to the last bit, the same alone and
in any batch.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from reticent.core import Box, Norm
from reticent.core.norms import operator_norm
from reticent.lipschitz import IntervalBound, LayeredBound, LinearBound
from reticent.lipschitz.bounds import Functionals, combine
from reticent.networks import Affine, Network, affine_chain
from tests.lipschitz import brute_force
from tests.lipschitz.conftest import BOUNDS, NORMS, RELU_FAMILIES, build, jacobians
from tests.lipschitz.nested_regions import violations


def test_isotone_for_all_norms(kind, family, norms):
    for input_norm, output in norms:
        bound = build(kind, family, input_norm, output)
        # The layered bound goes through its points one by one.
        plain, layered = (input_norm, output) == ("linf", "l1"), kind == "layered"
        count = (400 if layered else 10_000) if plain else 60 if layered else 300
        assert violations(bound, count, 2)[0] == 0, (input_norm, output)


def test_at_least_every_jacobian(kind, family, norms):
    for input_norm, output in norms:
        bound = build(kind, family, input_norm, output)
        rng = np.random.default_rng(5)
        d = bound.domain.dimension
        centers, radius = rng.uniform(-2, 2, size=(6, d)), 0.4
        step = rng.uniform(-1, 1, size=(30, 6, d))
        step *= radius * rng.random((30, 6, 1)) ** 0.3 / bound.input_norm.of(step)[..., None]
        spread = output == "spread"
        outputs = bound.network.output_dimension
        rows = Functionals.of("spread", outputs).rows if spread else np.eye(outputs)
        measured = Norm.LINF if spread else Norm(output)
        found = jacobians(bound.network, (centers + step).reshape(-1, d))
        for jacobian, limit in zip(found, np.tile(bound.bound(centers, radius), 30), strict=True):
            exact = operator_norm(rows @ jacobian, bound.input_norm, measured)
            assert exact <= limit * (1 + 1e-12), (input_norm, output)


@pytest.mark.parametrize(("name", "norm", "output"), NORMS)
def test_equals_the_exact_constant_of_affine_networks(name, norm, output):
    """One affine layer, and a ReLU network that is on everywhere and so computes an affine map."""
    rng = np.random.default_rng(6)
    matrix = rng.normal(size=(4, 4))
    rows = Functionals.of("spread", 4).rows if output == "spread" else np.eye(4)
    exact = operator_norm(
        rows @ matrix, Norm(norm), Norm.LINF if output == "spread" else Norm(output)
    )
    for network in (
        Network((Affine(matrix, np.ones(4)),), (4,)),
        affine_chain([np.eye(4), matrix], [np.full(4, 10.0), np.zeros(4)]),
    ):
        bound = BOUNDS[name](network, domain=Box.cube(4, 2.0), input_norm=Norm(norm), output=output)
        computed = bound.bound(rng.uniform(-2, 2, size=(3, 4)), [0.0, 0.5, np.inf])
        assert (computed >= exact).all()
        assert computed == pytest.approx(np.full(3, exact), rel=2e-5)


@pytest.mark.parametrize("name", ["layered", "linear"])
@pytest.mark.parametrize("family", RELU_FAMILIES)
def test_never_above_intervals(name, family):
    rng = np.random.default_rng(1)
    for output in ("l1", "l2"):
        bounds = [build(made, family, "linf", output) for made in (name, "interval")]
        points = rng.uniform(-2, 2, size=(20, bounds[0].domain.dimension))
        radii = rng.random(20) * 1.5
        found, plain = (bound.bound(points, radii) for bound in bounds)
        assert (found <= plain * (1 + 1e-3)).all()  # of the grid of the whole domain


@pytest.mark.parametrize("output", ["l1", "linf", "l2", "spread"])
@pytest.mark.parametrize(
    ("bound", "most"),
    [(IntervalBound, 1.2), (LayeredBound, 1.1), (LinearBound, 1.1)],
)
def test_at_least_the_exact_constant_of_tiny_networks(bound, most, output):
    """And on average no more than so many times as large."""
    rng = np.random.default_rng(0)
    ratios = []
    for _, network in brute_force.tiny_networks(8, most_hidden=7, seed=1):
        domain = Box.cube(network.input_dimension, 3.0)
        center = rng.uniform(-2, 2, size=network.input_dimension)
        radius = float(rng.choice([0.05, 0.4, 1.0]))
        low, high = np.maximum(center - radius, -3.0), np.minimum(center + radius, 3.0)
        exact = brute_force.lipschitz(network, low, high, output)
        made = bound(network, domain=domain, input_norm=Norm.LINF, output=output)
        found = float(made.bound(center[None], radius)[0])
        assert found >= exact * (1 - 1e-9)
        ratios.append(found / exact if exact > 0.01 else 1.0)
    assert np.mean(ratios) < most


def test_a_row_does_not_depend_on_its_batch(kind, family):
    bound = build(kind, family)
    rng = np.random.default_rng(8)
    points, radii = rng.normal(size=(23, bound.domain.dimension)), rng.random(23)
    together = bound.bound(points, radii)
    order = rng.permutation(23)
    assert np.array_equal(bound.bound(points[order], radii[order]), together[order])
    assert np.array_equal(
        np.concatenate([bound.bound(points[[i]], radii[[i]]) for i in range(23)]), together
    )


@pytest.mark.parametrize("name", BOUNDS)
def test_results_do_not_depend_on_threads(name):
    import torch

    bound = build(name, "convolution")
    points = np.random.default_rng(9).normal(
        size=(128 if name == "layered" else 1000, bound.domain.dimension)
    )
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            with threadpool_limits(threads):
                results.append(bound.bound(points, 0.3))
    finally:
        torch.set_num_threads(before)
    assert np.array_equal(*results)


def test_at_most_agrees_with_the_bound(kind, family):
    bound = build(kind, family)
    rng = np.random.default_rng(10)
    centers = np.round(rng.uniform(-2, 2, size=(60, bound.domain.dimension)) / bound.input_step)
    region = bound.region_on_grid(centers, np.round(rng.random(60) / bound.input_step))
    bounds = bound.bound_over(region)
    some = bounds[: 6 if kind == "layered" else 20]
    limits = [*some, *np.nextafter(some, 0.0), *np.nextafter(some, np.inf), 1e-300, 1e300]
    for limit in limits:
        assert np.array_equal(bound.at_most(region, float(limit)), bounds <= limit)


def test_radius_zero_infinite_and_points_outside_the_domain(kind, family):
    bound = build(kind, family)
    far = np.full((1, bound.domain.dimension), 1e9)
    inside = bound.domain.upper[None]
    assert bound.bound(far, 0.1) == bound.bound(inside, 0.1)
    everywhere = bound.global_bound()
    assert 0 <= everywhere < np.inf
    for radius in (1e3, 1e308, np.inf):
        assert bound.bound(inside, radius) == everywhere
    assert (bound.bound(inside, [0.0]) <= everywhere).all()


@pytest.mark.parametrize(
    ("scale", "width"),
    [
        (0.0, 1.0),
        (1e-30, 1.0),
        (1e30, 1.0),
        (1e-30, 1e30),
        (1e30, 1e-30),
        (1.0, 0.0),
        (1e-85, 1.0),
        (1.0, 1e80),
    ],
)
@pytest.mark.parametrize("kind", [IntervalBound, LayeredBound, LinearBound])
def test_scales(kind, scale, width):
    """Scaling the weights of a network without biases scales its constant, however far."""
    rng = np.random.default_rng(11)
    weights = [rng.normal(size=(5, 3)), rng.normal(size=(2, 5))]
    networks = [
        affine_chain([factor * weights[0], weights[1]], [np.zeros(5), np.zeros(2)])
        for factor in (1.0, scale)
    ]
    bounds = [
        kind(network, domain=Box.cube(3, size), input_norm=Norm.LINF, output=Norm.L1)
        for network, size in zip(networks, (1.0, width), strict=True)
    ]
    plain = bounds[0].bound([[0.5, -0.5, 0.25]], 0.125)
    scaled = bounds[1].bound(width * np.array([[0.5, -0.5, 0.25]]), 0.125 * width)
    if width == 0:  # one point, on the kink of every neuron; its constant is 0
        assert 0 <= scaled <= bounds[0].bound(np.zeros((1, 3)), 0.0)
    else:
        assert scaled == pytest.approx(plain * scale, rel=1e-5, abs=1e-200)


@pytest.mark.parametrize("kind", [IntervalBound, LayeredBound, LinearBound])
@pytest.mark.parametrize("output", ["l1", "l2", "linf"])
def test_one_input_one_output_and_constant_networks(kind, output):
    def bound(network):
        return kind(network, domain=Box.cube(1, 2.0), input_norm=Norm.LINF, output=output)

    steep = affine_chain([[[2.0], [-1.0]], [[1.0, 1.0]]], [[0.0, 0.0], [5.0]])
    assert bound(steep).bound([[1.0], [-1.0], [0.0]], 0.5) == pytest.approx([2.0, 1.0, 2.0])
    for constant in ([[[0.0]]], [[[0.0]], [[1.0]]], [[[1.0]], [[0.0]]]):
        network = affine_chain(constant, [[1.0]] * len(constant))
        assert bound(network).bound([[0.3]], 1.0) == pytest.approx([0.0], abs=1e-12)
    off = affine_chain([[[1.0]], [[7.0]]], [[-10.0], [0.0]])
    assert bound(off).bound([[0.3]], np.inf) == pytest.approx([0.0], abs=1e-12)


def test_the_domain_can_need_a_coarser_grid_than_its_half_width():
    """A domain whose grid rounding crosses a power of two: centers and radii must be on the
    first layer's grid.
    """
    half = (2.0**31 - 40 * 2**24) / (2**24 + 2)
    network = affine_chain([[[1.0]], [[1.0]]], [[-42.0], [0.0]])
    for norm in (Norm.L1, Norm.L2):
        bound = IntervalBound(network, domain=Box.cube(1, half), input_norm=norm, output=Norm.L1)
        assert bound.bound([[40.0], [44.0]], 1.0) == pytest.approx([0.0, 1.0], abs=1e-6)
    for offset in range(200):
        domain = Box.cube(1, half * (1 - offset * 2.0**-31))
        bound = IntervalBound(network, domain=domain, input_norm=Norm.L2, output=Norm.L1)
        assert bound._stages[0].forward.input_unit == bound.input_step


def test_domain_of_width_zero_in_some_coordinates(kind, family):
    network = build(kind, family).network
    d = network.input_dimension
    domain = Box(np.full(d, 0.25), np.where(np.arange(d) % 2 == 0, 0.25, 1.5))
    bound = type(build(kind, family))(network, domain=domain, input_norm=Norm.LINF, output=Norm.L1)
    points = np.random.default_rng(12).uniform(domain.lower, domain.upper, size=(50, d))
    values = network.forward(points)
    change = np.abs(values[:, None] - values[None]).sum(axis=-1)
    moved = np.abs(points[:, None] - points[None]).max(axis=-1)
    assert (change <= bound.global_bound() * moved * (1 + 1e-12) + 1e-12).all()


@pytest.mark.parametrize("norm", list(Norm))
def test_regions_contain_their_balls(norm):
    """In rational arithmetic: the ball around the grid center contains the ball that was asked
    for.
    """
    network = Network((Affine(np.ones((1, 3)), np.zeros(1)),), (3,))
    bound = IntervalBound(network, domain=Box.cube(3, 1.0), input_norm=norm, output=Norm.L1)
    rng = np.random.default_rng(16)
    points, radii = rng.uniform(-1, 1, size=(200, 3)), rng.choice([0.0, 1e-9, 0.3, 1.0], size=200)
    points[::3] = (
        np.round(points[::3] / bound.input_step) + 0.5
    ) * bound.input_step  # as far from the grid as can be
    region, step = bound.region(points, radii), Fraction(bound.input_step)
    for point, radius, center, reach in zip(
        points, radii, region.centers, region.radii[:, 0], strict=True
    ):
        moved = [abs(Fraction(x) - Fraction(c) * step) for x, c in zip(point, center, strict=True)]
        left = Fraction(reach) * step - Fraction(radius)
        size = {Norm.L1: sum(moved), Norm.LINF: max(moved)}.get(norm)
        assert left >= size if size is not None else left**2 >= sum(x**2 for x in moved)
        assert left >= 0


def test_wide_outputs_fall_back_to_the_sum():
    rng = np.random.default_rng(13)
    network = affine_chain(
        [rng.normal(size=(6, 3)), rng.normal(size=(15, 6))], [rng.normal(size=6), np.zeros(15)]
    )
    points = rng.uniform(-1, 1, size=(200, 3))
    exact = max(operator_norm(j, Norm.LINF, Norm.L1) for j in jacobians(network, points))
    for kind in (IntervalBound, LayeredBound, LinearBound):
        bound = kind(network, domain=Box.cube(3, 1.0), input_norm=Norm.LINF, output=Norm.L1)
        assert bound.functionals.combine == "sum"
        assert exact <= bound.global_bound()
        affine = kind(
            Network(network.layers[2:], (6,)),
            domain=Box.cube(6, 1.0),
            input_norm=Norm.LINF,
            output=Norm.L1,
        )
        assert affine.global_bound() == pytest.approx(
            operator_norm(network.layers[2].weight, Norm.LINF, Norm.L1)
        )


def test_spread_is_the_largest_difference_of_two_outputs():
    rows = Functionals.of("spread", 4).rows
    values = np.random.default_rng(14).normal(size=(50, 4))
    assert np.abs(values @ rows.T).max(axis=1) == pytest.approx(
        values.max(axis=1) - values.min(axis=1)
    )
    # A shift of all logits is no change.
    network = Network((Affine([[1.0, 2.0]] * 3, np.zeros(3)),), (2,))
    assert (
        IntervalBound(
            network, domain=Box.cube(2, 1.0), input_norm=Norm.LINF, output="spread"
        ).global_bound()
        == 0.0
    )


def test_combine_is_the_norm_and_monotone():
    entries = np.random.default_rng(15).random((500, 5))
    assert combine(entries, "max") == pytest.approx(entries.max(axis=1))
    assert combine(entries, "sum") == pytest.approx(entries.sum(axis=1))
    assert combine(entries, "l2") == pytest.approx(np.sqrt((entries**2).sum(axis=1)))
    for how in ("max", "sum", "l2"):
        assert (combine(np.nextafter(entries, 2.0), how) >= combine(entries, how)).all()


@pytest.mark.parametrize("how", ["sum", "l2"])
def test_a_long_sum_over_outputs_is_not_rounded_below_the_exact_one(how):
    values = np.full(2**17, 0.99 * 2.0**-53)
    values[0] = 1.0
    if how == "l2":
        values = np.sqrt(values)
    exact = math.fsum(values**2 if how == "l2" else values)
    joined = float(combine(values[None], how)[0])
    assert (joined**2 if how == "l2" else joined) >= exact
    assert joined <= (math.sqrt(exact) if how == "l2" else exact) * (1 + 1e-9)
