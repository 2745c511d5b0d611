"""Exact search against brute force over patterns; decisions that are exact to the last bit; psi
is 1-Lipschitz.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from papers.posthoc.exact.constants import ExactBound, Status, lipschitz_constant, nearest_violation
from papers.posthoc.exact.patterns import ReluChain
from papers.posthoc.exact.search import Goal, Limits, PatternSearch
from reticent.core import Box, Norm
from reticent.core.errors import (
    CertificationFailed,
    InvalidInput,
    InvalidParameter,
    UnsupportedNetwork,
    UnsupportedNorm,
)
from reticent.lipschitz import EnumerationBound, LevelTest, LipschitzBound
from reticent.lipschitz.radius import snap
from reticent.networks import Activation, ActivationKind, Affine, Network, affine_chain
from tests.lipschitz import brute_force

OUTPUTS = {"l1": Norm.L1, "linf": Norm.LINF, "spread": "spread"}
WIDTHS = [(2, 5, 2), (3, 6, 3), (2, 4, 4, 2), (3, 4, 3, 2), (2, 3, 3, 3, 2), (3, 2)]


def chain(rng, widths, *, whole=False):
    weights = [rng.normal(size=(b, a)) / np.sqrt(a) for a, b in pairwise(widths)]
    biases = [0.5 * rng.normal(size=b) for b in widths[1:]]
    if whole:
        weights, biases = [np.round(2 * w) for w in weights], [np.round(2 * b) for b in biases]
    return affine_chain(weights, biases)


def ball(domain, center, radius):
    return np.maximum(center - radius, domain.lower), np.minimum(center + radius, domain.upper)


def against_brute_force(network, center, radius, output, *, limit_share):
    """What brute force contradicts, by name, and whether there was a distance to compare."""
    domain = Box.cube(len(center), 2.0)
    lower, upper = ball(domain, center, radius)
    expected = brute_force.lipschitz(network, lower, upper, output)
    ask = {"domain": domain, "output": OUTPUTS[output]}
    found = lipschitz_constant(network, center, radius, relative=1e-9, absolute=1e-12, **ask)
    reproduced = brute_force.measure_of(jacobian_of(network, found.pattern), output)
    holds = {
        f"value {found.value} of {expected}": found.value
        == pytest.approx(expected, rel=1e-8, abs=1e-9),
        "lower end of the value": found.lower <= expected * (1 + 1e-9) + 1e-9,
        "upper end of the value": expected <= found.upper * (1 + 1e-9) + 1e-9,
        "width of the interval": found.upper <= found.lower * (1 + 1e-8) + 1e-8,
        "witness in the ball": ((found.witness >= lower) & (found.witness <= upper)).all(),
        "value of the pattern": reproduced == pytest.approx(found.value, rel=1e-9, abs=1e-12),
        "pattern of the witness": consistent(network, found.witness, found.pattern),
    }
    limit = limit_share * expected
    if limit > 1e-6:
        distance, _ = brute_force.nearest_violation(network, center, limit, lower, upper, output)
        nearest = nearest_violation(
            network, center, limit=limit, max_radius=radius, tolerance=1e-9, **ask
        )
        holds |= {
            f"distance {nearest.distance} of {distance}": nearest.distance
            == pytest.approx(distance, abs=1e-6),
            "value at the violation": nearest.value > limit,
            "interval of the distance": nearest.lower <= nearest.distance <= nearest.upper,
            "place of the violation": np.abs(nearest.witness - center).max() <= nearest.upper,
            "pattern of the violation": consistent(network, nearest.witness, nearest.pattern),
            "value of that pattern": brute_force.measure_of(
                jacobian_of(network, nearest.pattern), output
            )
            > limit,
        }
    return [name for name, right in holds.items() if not right], limit > 1e-6


def jacobian_of(network, pattern):
    matrix, start = np.eye(network.input_dimension), 0
    layers = network.linear_layers()
    for layer in layers[:-1]:
        matrix = (pattern[start : start + layer.outputs] > 0)[:, None] * (layer.dense() @ matrix)
        start += layer.outputs
    return layers[-1].dense() @ matrix


def consistent(network, point, pattern):
    """Whether the pre-activations at the point have the pattern's signs, kinks included, up to
    1e-9.
    """
    values, start = point, 0
    for layer in network.linear_layers()[:-1]:
        before = layer.dense() @ values + layer.bias
        if (before * pattern[start : start + layer.outputs] < -1e-9).any():
            return False
        values, start = np.maximum(before, 0.0), start + layer.outputs
    return True


@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("output", OUTPUTS)
def test_values_and_distances_are_those_of_brute_force(widths, output):
    rng = np.random.default_rng(3 + sum(widths))
    for whole in (False, True):
        network = chain(rng, widths, whole=whole)
        center = rng.uniform(-2, 2, size=widths[0])
        if whole:
            center = np.round(center)  # boxes that end on kinks
        contradictions, compared = against_brute_force(
            network, center, 0.5, output, limit_share=0.9
        )
        assert contradictions == []
        assert compared  # none of these networks is constant in its ball


@pytest.mark.slow
@pytest.mark.parametrize("count", [20, pytest.param(200, marks=pytest.mark.soak)])
def test_tiny_networks_against_brute_force(count):
    rng = np.random.default_rng(7)
    distances = 0
    for trial, (_, network) in enumerate(brute_force.tiny_networks(count, most_hidden=7, seed=3)):
        center, output = rng.uniform(-2, 2, size=network.input_dimension), list(OUTPUTS)[trial % 3]
        radius = float(rng.choice([0.2, 0.6]))
        contradictions, compared = against_brute_force(
            network, center, radius, output, limit_share=0.95
        )
        assert contradictions == []
        distances += compared
    assert distances > count // 2


def test_decisions_are_exact_where_the_limit_is_the_value():
    """Whole-number networks: L is a whole number, and "L <= P" has to be right for P = L and for
    the next float below.
    """
    rng = np.random.default_rng(11)
    domain, asked = Box.cube(2, 2.0), 0
    for widths in [(2, 5, 2), (2, 4, 3, 2)] * 3:
        network = chain(rng, widths, whole=True)
        center = np.round(rng.uniform(-1, 1, size=2))
        lower, upper = ball(domain, center, 1.0)
        value = brute_force.lipschitz(network, lower, upper, "l1")  # whole numbers: no rounding
        if value == 0:
            continue
        relu = ReluChain(network, domain=domain, output=Norm.L1)
        for limit, above in (
            (value, False),
            (np.nextafter(value, 0), True),
            (np.nextafter(value, np.inf), False),
        ):
            search = PatternSearch(relu, center, lower, upper, Goal.DECIDE, threshold=float(limit))
            search.run()
            assert search.exceeded == above
            asked += 1
    assert asked >= 9


@pytest.mark.parametrize("widths", [(3, 8, 3), (3, 6, 4, 2)])
def test_decisions_at_the_rounded_value_and_its_neighbours_compare_real_numbers(widths):
    """General weights: L is no float. The floats around it are told apart by the rational value
    of the pattern.
    """
    network, domain = chain(np.random.default_rng(13), widths), Box.cube(3, 3.0)
    relu = ReluChain(network, domain=domain, output=Norm.L1)
    for center in np.random.default_rng(14).uniform(-2, 2, size=(3, 3)):
        exact = relu.exact_value(
            lipschitz_constant(network, center, 0.5, domain=domain, relative=1e-9).pattern
        )
        for limit in (
            np.nextafter(float(exact), 0),
            float(exact),
            np.nextafter(float(exact), np.inf),
        ):
            search = PatternSearch(
                relu, center, *ball(domain, center, 0.5), Goal.DECIDE, threshold=float(limit)
            )
            search.run()
            assert search.exceeded == (exact > Fraction(float(limit)))


def test_a_kink_on_the_edge_of_the_ball_counts_and_one_beyond_it_by_a_grid_step_does_not():
    """max(x, 0) around -1: the closed ball of radius 1 touches the kink, where both slopes are
    allowed.
    """
    network = affine_chain([[[1.0]], [[1.0]]], [[0.0], [0.0]])
    bound = ExactBound(network, domain=Box.cube(1, 4.0), input_norm=Norm.LINF, output=Norm.L1)
    steps = round(1.0 / bound.input_step)
    centers = np.array([[-float(steps)], [-float(steps) - 1], [-float(steps) + 1]])
    region = bound.region_on_grid(centers, np.full(3, float(steps)))
    assert bound.at_most(region, 0.5).tolist() == [False, True, False]
    assert bound.at_most(region, 1.0).all()
    assert bound.levels(centers, steps // 4, limit=0.5, max_level=8).tolist() == [3, 4, 3]


def exact_bound(widths, seed, output="l1", *, half_width=3.0):
    network = chain(np.random.default_rng(seed), widths)
    return ExactBound(
        network,
        domain=Box.cube(widths[0], half_width),
        input_norm=Norm.LINF,
        output=OUTPUTS[output],
    )


@pytest.mark.parametrize("widths", [(3, 8, 3), (3, 6, 4, 2)])
def test_exact_lies_below_every_isotone_bound_and_above_sampled_quotients(widths):
    rng = np.random.default_rng(5)
    bound = exact_bound(widths, 1)
    points, radius = rng.uniform(-3, 3, size=(12, widths[0])), 0.4
    values = bound.bound(points, radius)
    cheap = EnumerationBound(
        bound.network, domain=bound.domain, input_norm=Norm.LINF, output=Norm.L1
    ).bound(points, radius)
    assert (values <= cheap * (1 + 2 * bound.relative)).all()
    assert (values < 0.99 * cheap).any()
    ends = np.clip(points[:, None] + rng.uniform(-radius, radius, size=(12, 400, widths[0])), -3, 3)
    outputs = bound.network.forward(ends.reshape(-1, widths[0])).reshape(12, 400, -1)
    moved = np.abs(np.diff(outputs, axis=1)).sum(axis=2) / np.abs(np.diff(ends, axis=1)).max(axis=2)
    assert (moved.max(axis=1) <= values * (1 + 1e-9)).all()
    assert bound.global_bound() >= values.max()


@pytest.mark.parametrize("widths", [(2, 7, 2), (2, 4, 4, 2)])
def test_levels_are_the_binary_search_s_alone_in_any_batch_and_in_any_order(widths):
    rng = np.random.default_rng(6)
    bound = exact_bound(widths, 2)
    radius = 0.06
    points = rng.uniform(-3.2, 3.2, size=(25, 2))
    plain = LevelTest(bound, 1.0, radius, 6)
    touched = float(
        bound.bound_over(
            bound.region_on_grid(snap(bound, points[:1]), np.array([2.0 * plain.radius_steps]))
        )[0]
    )
    for proposal in (
        0.8 * bound.global_bound(),
        touched,
        float(np.nextafter(touched / (1 + bound.relative), 0)),
    ):
        test = LevelTest(bound, proposal, radius, 6)
        levels = test.levels(points)
        searched = LipschitzBound.levels(
            bound, snap(bound, points), test.radius_steps, limit=proposal, max_level=6
        )
        assert np.array_equal(levels, searched)
        order = rng.permutation(len(points))
        assert np.array_equal(test.levels(points[order]), levels[order])
        assert np.array_equal(
            np.concatenate([test.levels(points[[i]]) for i in range(8)]), levels[:8]
        )
        assert len(np.unique(levels)) > 1


def test_where_the_proposal_is_exactly_a_value_on_a_kink():
    """Whole-number kinks, centers and radii: every ball ends on kinks, every value is hit
    exactly.
    """
    network = affine_chain(
        [[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [[1.0, 2.0, 4.0]]], [[0.0, -1.0, -2.0], [0.0]]
    )
    bound = ExactBound(network, domain=Box.cube(2, 4.0), input_norm=Norm.LINF, output=Norm.L1)
    steps = round(0.5 / bound.input_step)
    centers = np.array([[i, j] for i in (-2.0, -1.0) for j in (-2.0, 0.0)]) / bound.input_step
    values = [
        [
            brute_force.lipschitz(network, *ball(bound.domain, center, 0.5 * level), "l1")
            for level in range(1, 7)
        ]
        for center in centers * bound.input_step
    ]
    for limit in (1.0, 2.0, 3.0, 8.0, 9.0, 10.0, 11.0):
        levels = bound.levels(centers, steps, limit=limit, max_level=6)
        assert levels.tolist() == [sum(value <= limit for value in row) for row in values]


def test_levels_of_neighbours_differ_by_at_most_one():
    rng = np.random.default_rng(8)
    bound, radius = exact_bound((2, 7, 2), 3), 0.07
    test = LevelTest(bound, 0.75 * bound.global_bound(), radius, 8)
    first = rng.uniform(-3.2, 3.2, size=(150, 2))
    second = first + radius * rng.choice([-1.0, 1.0], size=first.shape) * (1 - 1e-12)
    levels, others = test.levels(first), test.levels(second)
    assert (np.abs(levels - others) <= 1).all()
    assert len(np.unique(levels)) > 3


@pytest.mark.slow
def test_psi_is_one_lipschitz_on_ten_thousand_pairs():
    """No pair in 10**4 may violate |psi - psi'| <= d + tolerance: 120 points, all pairs of which
    are compared, and close ones.
    """
    rng = np.random.default_rng(9)
    network, domain = chain(np.random.default_rng(4), (2, 7, 2)), Box.cube(2, 3.0)
    limit = 0.7 * lipschitz_constant(network, [0.0, 0.0], np.inf, domain=domain).value
    points = rng.uniform(-3, 3, size=(120, 2))
    points[60:] = np.clip(
        points[:60] + rng.normal(size=(60, 2)) * rng.choice([1e-9, 1e-4, 0.05], size=(60, 1)), -3, 3
    )
    ask = {"limit": limit, "max_radius": 2.0, "domain": domain, "tolerance": 1e-7}
    psi = np.array(
        [min(nearest_violation(network, point, **ask).distance, 2.0) for point in points]
    )
    between = np.abs(points[:, None] - points[None]).max(axis=2)
    assert between.size > 10_000
    assert (np.abs(psi[:, None] - psi[None]) <= between + 2e-7).all()
    assert len(np.unique(np.round(psi, 3))) > 30


def test_the_distance_is_where_the_decision_changes():
    rng = np.random.default_rng(10)
    network, domain = chain(rng, (3, 6, 3, 2)), Box.cube(3, 3.0)
    center = np.array([0.2, -0.1, 0.4])
    limit = 0.9 * lipschitz_constant(network, center, 1.0, domain=domain).value
    found = nearest_violation(network, center, limit=limit, max_radius=1.0, domain=domain)
    relu = ReluChain(network, domain=domain, output=Norm.L1)
    for radius, above in ((found.distance + 1e-7, True), (found.distance - 1e-7, False)):
        search = PatternSearch(
            relu, center, *ball(domain, center, radius), Goal.DECIDE, threshold=limit
        )
        search.run()
        assert search.exceeded == above


def test_edge_cases():
    domain = Box.cube(2, 2.0)
    affine = affine_chain([[[1.0, -2.0], [0.5, 0.0]]], [[0.0, 1.0]])
    assert lipschitz_constant(affine, [0.0, 0.0], np.inf, domain=domain).value == pytest.approx(3.5)
    assert (
        nearest_violation(affine, [0.0, 0.0], limit=3.0, max_radius=1.0, domain=domain).distance
        == 0.0
    )
    constant = affine_chain([np.zeros((3, 2)), np.ones((2, 3))], [np.ones(3), np.zeros(2)])
    assert lipschitz_constant(constant, [0.0, 0.0], 1.0, domain=domain, absolute=1e-12).value == 0.0
    found = nearest_violation(constant, [0.0, 0.0], limit=1.0, max_radius=np.inf, domain=domain)
    assert (found.status, found.distance, found.witness) == (Status.NONE_WITHIN, np.inf, None)
    flat = Box(np.array([0.5, -1.0]), np.array([0.5, 1.0]))
    network = affine_chain([[[1.0, 1.0], [1.0, -1.0]], [[1.0, 3.0]]], [[0.0, 0.0], [0.0]])
    assert lipschitz_constant(network, [9.0, 9.0], 0.25, domain=flat).value == pytest.approx(2.0)
    at_a_kink = affine_chain([[[1.0]], [[2.0]]], [[0.0], [0.0]])
    assert lipschitz_constant(at_a_kink, [0.0], 0.0, domain=Box.cube(1, 1.0)).value == 2.0
    assert (
        lipschitz_constant(at_a_kink, [-1e-3], 0.0, domain=Box.cube(1, 1.0), absolute=1e-12).value
        == 0.0
    )


@pytest.mark.parametrize("output", OUTPUTS)
def test_an_affine_network_is_decided_to_the_last_bit(output):
    network = affine_chain([[[1.0, -2.0], [0.5, 0.25]]], [[0.0, 1.0]])
    bound = ExactBound(
        network, domain=Box.cube(2, 2.0), input_norm=Norm.LINF, output=OUTPUTS[output]
    )
    value = brute_force.measure_of(network.linear_layers()[0].dense(), output)
    region = bound.region(np.zeros((1, 2)), np.array([0.5]))
    assert bound.at_most(region, value).all()
    assert not bound.at_most(region, float(np.nextafter(value, 0))).any()
    assert bound.bound(np.zeros((1, 2)), 0.5)[0] == pytest.approx(value, rel=1e-5)


def test_a_limit_raises_and_leaves_no_answer():
    network = chain(np.random.default_rng(12), (4, 12, 8, 3))
    ask = {"domain": Box.cube(4, 3.0)}
    with pytest.raises(
        CertificationFailed, match="not finished after nodes=1; expected a higher limit"
    ):
        lipschitz_constant(network, np.zeros(4), 2.0, limits=Limits(nodes=1), **ask)
    with pytest.raises(CertificationFailed, match="not finished after cpu_seconds=0"):
        lipschitz_constant(network, np.zeros(4), 2.0, limits=Limits(cpu_seconds=0.0), **ask)
    with pytest.raises(CertificationFailed, match="not finished after wall_seconds=0"):
        lipschitz_constant(network, np.zeros(4), 2.0, limits=Limits(wall_seconds=0.0), **ask)
    bound = ExactBound(network, input_norm=Norm.LINF, output=Norm.L1, limits=Limits(nodes=1), **ask)
    with pytest.raises(CertificationFailed):
        bound.bound(np.zeros((1, 4)), 2.0)
    region = bound.region(np.zeros((1, 4)), np.array([0.3]))
    unlimited = ExactBound(network, input_norm=Norm.LINF, output=Norm.L1, **ask)
    limit = float(unlimited.bound_over(region)[0])
    assert bound.at_most(region, limit * 1.001).all()  # decisions know no limit
    assert not bound.at_most(region, limit * 0.999).any()


def test_bad_questions():
    plain, ask = chain(np.random.default_rng(0), (2, 3, 2)), {"domain": Box.cube(2, 1.0)}
    layer, tanh = Affine(np.eye(2), np.zeros(2)), Activation(ActivationKind.TANH)
    many = affine_chain([np.ones((2, 15)), np.ones((2, 2))], [np.zeros(2), np.zeros(2)])
    for network, center, radius, change, error in (
        (plain, [0, 0], 0.1, {"input_norm": Norm.L2}, UnsupportedNorm),
        (plain, [0, 0], 0.1, {"output": Norm.L2}, UnsupportedNorm),
        (plain, [0, 0], -1.0, {}, InvalidParameter),
        (plain, [0, 0], np.nan, {}, InvalidParameter),
        (plain, [0], 0.1, {}, InvalidInput),
        (plain, [np.nan, 0], 0.1, {}, InvalidInput),
        (plain, [0, 0], 0.1, {"domain": Box.cube(3, 1.0)}, InvalidInput),
        (plain, [0, 0], 0.1, {"relative": 0.0}, InvalidParameter),
        (Network((layer, tanh, layer), (2,)), [0, 0], 0.1, {}, UnsupportedNetwork),
        (many, np.zeros(15), 0.1, {"domain": Box.cube(15, 1.0)}, UnsupportedNorm),
    ):
        with pytest.raises(error):
            lipschitz_constant(network, center, radius, **{**ask, **change})
