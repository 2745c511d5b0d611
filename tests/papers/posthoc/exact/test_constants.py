"""Exact search against brute force over patterns; decisions that are exact to the last bit."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from papers.posthoc.exact.constants import ExactBound, lipschitz_constant
from papers.posthoc.exact.patterns import ReluChain
from papers.posthoc.exact.search import Goal, PatternSearch
from reticent.core import Box, Norm
from reticent.lipschitz import LevelTest
from reticent.lipschitz.radius import snap
from reticent.networks import affine_chain
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


def against_brute_force(network, center, radius, output):
    """What brute force contradicts, by name."""
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
    return [name for name, right in holds.items() if not right]


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
def test_values_are_those_of_brute_force(widths, output):
    rng = np.random.default_rng(3 + sum(widths))
    for whole in (False, True):
        network = chain(rng, widths, whole=whole)
        center = rng.uniform(-2, 2, size=widths[0])
        if whole:
            center = np.round(center)  # boxes that end on kinks
        assert against_brute_force(network, center, 0.5, output) == []


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


@pytest.mark.parametrize("widths", [(2, 7, 2), (2, 4, 4, 2)])
def test_levels_are_those_of_single_decisions_in_any_batch_and_in_any_order(widths):
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
        decided = [
            bound.at_most(
                bound.region_on_grid(snap(bound, points), np.full(25, level * test.radius_steps)),
                proposal,
            )
            for level in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
        ]
        assert np.array_equal(levels, np.sum(decided, axis=0))
        order = rng.permutation(len(points))
        assert np.array_equal(test.levels(points[order]), levels[order])
        assert np.array_equal(
            np.concatenate([test.levels(points[[i]]) for i in range(8)]), levels[:8]
        )
        assert len(np.unique(levels)) > 1
