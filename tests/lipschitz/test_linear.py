"""The linear-relaxation bound: exact oracles, sampled Jacobians at 64 and 784 inputs, nested
regions in every norm, and lines that follow the region, which those must catch.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from reticent.core import Box, Norm
from reticent.lipschitz import IntervalBound, LinearBound, relaxation
from reticent.networks import affine_chain

HALF = 3.0
NORMS = [Norm.LINF, Norm.L2, Norm.L1]


def chain(rng, *widths, bias=0.5):
    pairs = list(pairwise(widths))
    weights = [rng.normal(size=(after, before)) / np.sqrt(before) for before, after in pairs]
    return affine_chain(weights, [bias * rng.normal(size=after) for _, after in pairs])


def linear(network, norm=Norm.LINF, output=Norm.L1, half=HALF):
    domain = Box.cube(network.input_dimension, half)
    return LinearBound(network, domain=domain, input_norm=norm, output=output)


def directions(rng, norm, count, inputs):
    """Random points of the unit ball, most of them near its surface."""
    drawn = rng.normal(size=(count, inputs))
    if norm is Norm.L1:
        drawn *= rng.random((count, inputs)) < 3.0 / inputs
        drawn[np.arange(count), rng.integers(inputs, size=count)] += 1.0
    sizes = np.maximum(norm.of(drawn), 1e-9)[:, None]
    return drawn / sizes * rng.random((count, 1)) ** (1.0 / 8.0)


def jacobians(network, points):
    """Products of the matrices at points, shape (n, outputs, inputs)."""
    layers = network.linear_layers()
    found, values = (
        np.broadcast_to(layers[0].dense(), (len(points), *layers[0].dense().shape)),
        points,
    )
    for layer, after in pairwise(layers):
        values = layer.forward(values)
        found = after.dense() @ ((values > 0)[:, :, None] * found)
        values = np.maximum(values, 0)
    return found


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("widths", [(64, 40, 30, 10), (784, 32, 24, 10), (20, 15, 12, 9, 8)])
def test_at_least_sampled_jacobians_and_at_most_intervals(norm, widths):
    rng = np.random.default_rng(1)
    network = chain(rng, *widths)
    centers = rng.uniform(-1, 1, size=(3, widths[0]))
    reach = {Norm.LINF: 0.05, Norm.L2: 0.5, Norm.L1: 1.0}[norm]
    for output in (Norm.L2, Norm.LINF):
        bound = linear(network, norm, output)
        plain = IntervalBound(network, domain=bound.domain, input_norm=norm, output=output)
        found, apart = bound.bound(centers, reach), plain.bound(centers, reach)
        assert (found <= apart * (1 + 1e-6)).all()
        for center, most in zip(centers, found, strict=True):
            points = center + reach * directions(rng, norm, 60, widths[0])
            moves = directions(rng, norm, 60, widths[0])
            moves /= norm.of(moves)[:, None]
            changes = np.einsum("pmi,qi->pqm", jacobians(network, points), moves)
            assert (output.of(changes) <= most * (1 + 1e-12)).all()
        # Rows of the Jacobian at the center: nearly attained for small balls.
        rows = norm.dual.of(jacobians(network, centers), axis=2)
        if output is Norm.LINF:
            assert (bound.bound(centers, 1e-9) <= rows.max(axis=1) * (1 + 1e-4)).all()


def nested(rng, bound, count):
    """Nested balls in whole grid steps around points at kinks of the first layer or anywhere, from
    radius 0 to beyond the domain.
    """
    step, inputs = bound.input_step, bound.domain.dimension
    first = bound.network.linear_layers()[0]
    edge = HALF / step
    center = rng.uniform(-1.5, 1.5, size=(count, inputs))
    which = rng.integers(first.outputs, size=count)
    rows = first.dense()[which]
    values = (rows * center).sum(axis=1) + first.bias[which]
    onto = center - values[:, None] * rows / (rows**2).sum(axis=1, keepdims=True)
    center[::2] = onto[::2]
    center = np.clip(np.round(center / step), -edge, edge)
    largest = bound.input_norm.of_ones(inputs) * 2.5 * HALF
    sizes = rng.choice([0.0, 1e-6, 0.005, 0.02, 0.05, 1.0], size=count)
    radius = np.floor(sizes * rng.random(count) * largest / step) + rng.integers(0, 3, size=count)
    shift = np.trunc(
        directions(rng, bound.input_norm, count, inputs) * radius[:, None] * rng.random((count, 1))
    )
    shift[rng.random(count) < 0.3] = 0.0
    inner = np.clip(center + shift, -edge, edge)
    left = np.floor((radius - bound.input_norm.of(inner - center)) * (1 - 2.0**-40))
    bad = left < 0
    inner[bad], left[bad] = center[bad], radius[bad]
    shrink = rng.random(count) < 0.6
    left[shrink] = np.floor(left[shrink] * rng.random(shrink.sum()))
    return center, radius, inner, left


def violations(bound, count, seed):
    """How many of so many pairs are the wrong way round, and which share differs at all."""
    center, radius, inner, left = nested(np.random.default_rng(seed), bound, count)
    large = bound.bound_over(bound.region_on_grid(center, radius))
    small = bound.bound_over(bound.region_on_grid(inner, left))
    return int((small > large).sum()), float(np.mean(small < large))


def wider(bound, count, seed):
    """How many pre-activation ranges of smaller regions leave those of larger ones."""
    center, radius, inner, left = nested(np.random.default_rng(seed), bound, count)
    large = bound._ranges(bound.region_on_grid(center, radius))
    small = bound._ranges(bound.region_on_grid(inner, left))
    return sum(
        int(((a.lower < b.lower) | (a.upper > b.upper)).sum())
        for a, b in zip(small, large, strict=True)
    )


NETWORKS = {
    "64 inputs": (64, 24, 20, 6),
    "784 inputs": (784, 20, 16, 4),
    "deep": (17, 12, 10, 9, 3),
}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("norm", NORMS)
def test_isotone_on_nested_regions(name, norm):
    network = chain(np.random.default_rng(2), *NETWORKS[name])
    for output, count in (("l1", 60), ("l2", 30), ("spread", 20)):
        wrong, strict = violations(linear(network, norm, output), count, 3)
        assert wrong == 0
        assert strict > 0.1


@pytest.mark.soak
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("norm", NORMS)
def test_isotone_on_ten_thousand_nested_regions(name, norm):
    """9 x 1,200 pairs."""
    network = chain(np.random.default_rng(4), *NETWORKS[name])
    wrong, strict = violations(linear(network, norm), 1200, 5)
    assert wrong == 0
    assert strict > 0.1


@pytest.mark.parametrize("norm", [Norm.LINF, Norm.L2])
def test_planted_fault_lower_slopes_that_follow_the_region_are_caught(norm, monkeypatch):
    """CROWN's rule (slope 1 where a range reaches further up than down) is sound, and nested
    regions find that its ranges are not isotone.
    """
    network = chain(np.random.default_rng(6), 64, 24, 20, 20, 6)

    def adaptive(self, rows, offsets, lines, inputs, lower_slope):
        # The lower line of slope 0 or 1, by the region: as if it had been chosen for each neuron.
        constant = np.broadcast_to(offsets, (len(inputs.middle), len(rows)))
        for layer, line in reversed(list(enumerate(lines))):
            below = np.where(line.on, 1.0, line.unstable * (line.slope > 0.5))
            positive = np.maximum(rows, 0)
            constant = constant + (positive @ line.intercept[:, :, None])[..., 0]
            rows = positive * line.slope[:, None, :] + (rows - positive) * below[:, None, :]
            constant = constant + rows @ self.biases[layer]
            rows = rows @ self.weights[layer]
        return inputs.largest(rows, constant)

    assert wider(linear(network, norm), 200, 7) == 0
    monkeypatch.setattr(relaxation.RelaxedForward, "_largest", adaptive)
    assert wider(linear(network, norm), 200, 7) > 0


@pytest.mark.parametrize("norm", [Norm.L2, Norm.L1])
def test_balls_beyond_the_domain_are_the_whole_domain(norm):
    bound = linear(chain(np.random.default_rng(8), 20, 9, 7, 2), norm)
    rng = np.random.default_rng(9)
    centers = np.round(rng.uniform(-HALF, HALF, size=(40, 20)) / bound.input_step)
    assert bound._balls is not None
    for radius in (bound._balls.whole, bound._balls.whole + 1, 2.0**52):
        values = bound.bound_over(bound.region_on_grid(centers, np.full(40, radius)))
        assert len(set(values)) == 1
        assert values[0] == bound.global_bound()
    almost = bound.region_on_grid(centers, np.full(40, bound._balls.whole - 1))
    assert (bound.bound_over(almost) <= bound.global_bound()).all()


@pytest.mark.parametrize("norm", [Norm.L2, Norm.L1])
@pytest.mark.parametrize("inputs", [1, 2, 20, 64])
def test_no_point_of_a_ball_leaves_the_range_over_which_lines_are_drawn(norm, inputs, monkeypatch):
    """Also where the ball reaches beyond the domain, and rounded weights err by more than within:
    the proof that the chain is isotone asks for it.
    """
    network = chain(np.random.default_rng(12), inputs, 40, 30, 3)
    bound, layer = linear(network, norm), network.linear_layers()[0]
    assert bound._balls is not None
    rng = np.random.default_rng(13)
    centers = np.round(rng.uniform(-HALF, HALF, size=(6, inputs)) / bound.input_step)
    radii = bound._balls.whole * np.array([0.0, 1e-6, 0.01, 0.5, 0.999, 2.0**20])
    drawn = []
    real = relaxation.RelaxedForward._relaxed

    def seen(self, region, lines, finest, slope):
        drawn.append((region, lines[0]))
        return real(self, region, lines, finest, slope)

    monkeypatch.setattr(relaxation.RelaxedForward, "_relaxed", seen)
    bound.bound_over(bound.region_on_grid(centers, np.floor(radii)))
    assert len(drawn) == len(relaxation.LOWER_SLOPES)
    balls, over = drawn[0]
    assert balls.norm is norm
    assert balls.reach.max() == bound._balls.largest * bound.input_step
    middle = balls.middle @ layer.dense().T + layer.bias
    reach = balls.reach * norm.dual.of(layer.dense(), axis=1)
    assert (middle + reach <= over.upper * over.unit).all()
    assert (middle - reach >= over.lower * over.unit).all()


@pytest.mark.parametrize("norm", [Norm.L2, Norm.L1])
def test_scales_bound_ranges_over_balls(norm):
    """The errors of floating point are counted from them. Neurons that look along different
    coordinates add up, while the dual norm of the sum of their rows is that of one.
    """
    weights = [np.eye(200), np.ones((2, 200)), np.ones((1, 2))]
    bound = linear(affine_chain(weights, [np.zeros(len(weight)) for weight in weights]), norm)
    assert bound._balls is not None
    balls, over = bound._balls(bound._whole_domain(), bound.input_step)
    finest = bound._forward.intervals[1].output_unit
    for slope in relaxation.LOWER_SLOPES:
        found = bound._forward._relaxed(balls, [over], finest, slope)
        assert found.largest() <= bound._forward.scales[1]
