"""Relaxed pre-activation ranges: sound, the optimum of their linear program, isotone, the same
in fractions.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from reticent.core import Box, Norm
from reticent.grids.arithmetic import Interval
from reticent.lipschitz import IntervalBound, LinearBound, relaxation
from reticent.lipschitz.interval import (
    build_forward,
    exact_maps,
    first_layer_values,
    forward_stages,
)
from reticent.lipschitz.relaxation import LOWER_SLOPES, Inputs, RelaxedForward
from reticent.networks import affine_chain
from tests.lipschitz.nested_regions import chain

HALF = 2.0


def forward_of(network):
    stages, step = build_forward(network, Box.cube(network.input_dimension, HALF))
    linear = network.linear_layers()[:-1]
    reach = np.full(network.input_dimension, HALF + step)
    maps = exact_maps(stages)[:-1]
    return (
        RelaxedForward.build(
            [layer.dense() for layer in linear], [layer.bias for layer in linear], maps, reach
        ),
        stages,
        step,
    )


def boxes(rng, step, count, inputs):
    """Boxes in whole grid steps; every fourth is a point or one grid step wide."""
    center = np.round(rng.uniform(-HALF, HALF, size=(count, inputs)) / step)
    reach = np.round(rng.uniform(0, 1, size=(count, 1)) / step)
    reach[::4] = rng.integers(0, 2, size=reach[::4].shape)
    edge = HALF / step
    return Interval(np.maximum(center - reach, -edge), np.minimum(center + reach, edge), step)


def ranges_over(forward, box):
    return forward.ranges(Inputs.boxes(box), *[forward.intervals[0](box)] * 2)[1]


def test_ranges_contain_sampled_pre_activations_and_lie_inside_intervals():
    rng = np.random.default_rng(0)
    network = chain(rng, 4, 9, 8, 7, 2)
    forward, stages, step = forward_of(network)
    box = boxes(rng, step, 60, 4)
    ranges = ranges_over(forward, box)
    points = (
        box.lower[:, None] + rng.random((60, 200, 4)) * (box.upper - box.lower)[:, None]
    ).reshape(-1, 4) * step
    tighter = []
    for layer in range(3):
        plain, _ = forward_stages(stages[: 2 * layer + 1], box)
        values = ranges[layer]
        assert (values.lower * values.unit >= plain.lower * plain.unit).all()
        assert (values.upper * values.unit <= plain.upper * plain.unit).all()
        widths = (part.upper - part.lower for part in (values, plain))
        tighter.append(next(widths).sum() * values.unit / (next(widths).sum() * plain.unit))
        z = points
        for index, linear in enumerate(network.linear_layers()[: layer + 1]):
            z = linear.forward(np.maximum(z, 0.0) if index else z)
        z = z.reshape(60, 200, -1)
        assert (z >= (values.lower * values.unit)[:, None] - 1e-12).all()
        assert (z <= (values.upper * values.unit)[:, None] + 1e-12).all()
    assert tighter[0] == 1.0
    assert tighter[2] < tighter[1] < 0.95


@pytest.mark.parametrize("slope", LOWER_SLOPES)
def test_substitution_is_the_optimum_of_the_linear_program(slope):
    """SciPy maximises each pre-activation of layer 2 over x in the box and h between the lines
    of every ReLU.
    """
    rng = np.random.default_rng(1)
    network = chain(rng, 3, 6, 4, 2)
    forward, _, step = forward_of(network)
    box = boxes(rng, step, 5, 3)
    first = forward.intervals[0](box)
    found = forward._relaxed(Inputs.boxes(box), [first], first.unit, slope)
    one, two = (layer.dense() for layer in network.linear_layers()[:2])
    bias_one, bias_two = (layer.bias for layer in network.linear_layers()[:2])
    for row in range(5):
        low, high = first.lower[row] * first.unit, first.upper[row] * first.unit
        left, right = [], []
        for j in range(6):  # variables: x, h
            unit = np.eye(6)[j]
            if low[j] >= 0 or high[j] < 0:
                factor = float(low[j] >= 0)
                lines = [(factor, 0.0, 1.0), (factor, 0.0, -1.0)]
            else:
                chord = high[j] / (high[j] - low[j])
                lines = [(chord, -chord * low[j], 1.0), (slope, 0.0, -1.0)]
            for factor, offset, sign in lines:  # sign * (h - factor * z) <= sign * offset
                left.append(np.concatenate([-sign * factor * one[j], sign * unit]))
                right.append(sign * (offset + factor * bias_one[j]))
        ends = [(a * step, b * step) for a, b in zip(box.lower[row], box.upper[row], strict=True)]
        for k in range(4):
            for sign, end in ((1.0, found.upper), (-1.0, -found.lower)):
                objective = np.concatenate([np.zeros(3), -sign * two[k]])
                best = linprog(
                    objective, np.array(left), right, bounds=[*ends, *[(None, None)] * 6]
                )
                assert end[row, k] * found.unit == pytest.approx(
                    -best.fun + sign * bias_two[k], abs=2e-6
                )


def test_scales_bound_ranges_of_small_neurons_as_they_are_rounded():
    """The first layer rounds its weights by as much for the small neuron as for the large one."""
    weights = [np.array([[1.0], [2.0**-60]]), np.array([[0.0, 1.0]] * 2), np.ones((1, 2))]
    forward, _, step = forward_of(affine_chain(weights, [np.zeros(len(w)) for w in weights]))
    box = Interval(np.array([[-HALF / step]]), np.array([[HALF / step]]), step)
    first = forward.intervals[0](box)
    finest = forward.intervals[1].output_unit
    found = forward._relaxed(Inputs.boxes(box), [first], finest, 0.0)
    assert first.largest() * 2.0**-30 < found.largest() <= forward.scales[1]


@pytest.mark.parametrize("widths", [(5, 9), (4, 9, 8), (40, 12, 9), (3, 7, 6, 6)])
def test_states_are_the_signs_of_all_ranges(widths):
    """Fewer rows and slopes are asked for, with the same answers in any batch."""
    rng = np.random.default_rng(8)
    forward, _, step = forward_of(chain(rng, *widths, 2))
    box = boxes(rng, step, 200, widths[0])
    on, unstable = forward(Inputs.boxes(box), *[forward.intervals[0](box)] * 2)
    for layer, values in enumerate(ranges_over(forward, box)):
        assert np.array_equal(on[layer], values.lower >= 0)
        assert np.array_equal(unstable[layer], (values.lower < 0) & (values.upper >= 0))
        assert 0 < unstable[layer].sum() < unstable[layer].size


@pytest.mark.parametrize("by", ["fractions", "long doubles"])
def test_fractions_and_long_doubles_give_the_same_ranges(monkeypatch, by):
    """With an error claimed to be most of a grid step, nearly every end is decided by fractions,
    or by long doubles: no bit may change.
    """
    rng = np.random.default_rng(3)
    forward, _, step = forward_of(chain(rng, 2, 4, 3, 3, 2))
    box = boxes(rng, step, 6, 2)
    plain = ranges_over(forward, box)
    asked, gaps = [], []
    real = relaxation.rounded_up

    def counting(values, error, unit, exactly, closer):
        def logged(index):
            result = exactly(index)
            asked.append(result)
            return result

        def seen(index):
            value, bound = closer(index)
            gaps.append(abs(float(value - values[index])) / error)
            return value, bound

        chosen = None if by == "fractions" else seen
        return real(values, 0.45 * unit, unit, logged, chosen)

    monkeypatch.setattr(relaxation, "rounded_up", counting)
    for before, after in zip(plain, ranges_over(forward, box), strict=True):
        assert np.array_equal(before.lower, after.lower)
        assert np.array_equal(before.upper, after.upper)
    assert all(isinstance(result, Fraction) for result in asked)
    if by == "fractions":
        assert len(asked) > 100
    else:
        assert len(gaps) > 100
        assert max(gaps) < 1  # and so float64 is within its own error
        assert len(asked) < len(gaps) or np.finfo(np.longdouble).nmant == 52


def test_balls_that_are_no_boxes_cut_the_first_layer_only_for_intervals():
    """An l1 ball's own first-layer ranges are tighter than its box's; the result still contains
    every sampled value.
    """
    rng = np.random.default_rng(5)
    network = chain(rng, 3, 8, 6, 2)
    bound = IntervalBound(network, domain=Box.cube(3, HALF), input_norm=Norm.L1, output=Norm.L1)
    forward, stages, step = forward_of(network)
    region = bound.region(rng.uniform(-1, 1, size=(20, 3)), np.full(20, 0.7))
    first = first_layer_values(stages[0], region, bound._first_norms)
    over = forward.intervals[0](region.box)
    values = forward.ranges(Inputs.boxes(region.box), over, first)[1][1]
    moves = rng.normal(size=(20, 300, 3))
    moves *= 0.7 * rng.random((20, 300, 1)) / np.abs(moves).sum(axis=2, keepdims=True)
    points = np.clip(region.centers[:, None] * step + moves, -HALF, HALF).reshape(-1, 3)
    one, two = network.linear_layers()[:2]
    z = two.forward(np.maximum(one.forward(points), 0)).reshape(20, 300, -1)
    assert (z >= (values.lower * values.unit)[:, None] - 1e-12).all()
    assert (z <= (values.upper * values.unit)[:, None] + 1e-12).all()


def ball_ranges(network, norm, centers, radii):
    """Ranges over l1 and l2 balls in whole steps, as the linear bound asks for them."""
    bound = LinearBound(
        network, domain=Box.cube(network.input_dimension, HALF), input_norm=norm, output=Norm.L1
    )
    inputs, over = bound._balls(bound.region_on_grid(centers, radii), bound.input_step)
    return bound, inputs, bound._forward.ranges(inputs, over, over)[1]


@pytest.mark.parametrize("norm", [Norm.L2, Norm.L1])
def test_ranges_over_balls_contain_every_sample_and_are_nearly_attained(norm):
    rng = np.random.default_rng(6)
    network = chain(rng, 12, 8, 6, 2)
    step = LinearBound(
        network, domain=Box.cube(12, HALF), input_norm=norm, output=Norm.L1
    ).input_step
    centers = np.round(rng.uniform(-1, 1, size=(15, 12)) / step)
    bound, _, values = ball_ranges(network, norm, centers, np.full(15, np.round(0.4 / step)))
    moves = rng.normal(size=(15, 400, 12))
    moves *= 0.4 * rng.random((15, 400, 1)) / norm.of(moves)[..., None]
    z = (centers[:, None] * step + moves).reshape(-1, 12)
    tightest = []
    for layer, part in zip(network.linear_layers(), values, strict=False):
        z = layer.forward(z)
        seen = z.reshape(15, 400, -1)
        low, high = part.lower * part.unit, part.upper * part.unit
        assert (seen >= low[:, None] - 1e-12).all()
        assert (seen <= high[:, None] + 1e-12).all()
        tightest.append(float(((seen.max(axis=1) - seen.min(axis=1)) / (high - low)).max()))
        z = np.maximum(z, 0)
    assert tightest[0] > 0.4
    assert bound.input_norm is norm


@pytest.mark.parametrize("norm", [Norm.L2, Norm.L1])
def test_fractions_give_the_same_ranges_over_balls(norm, monkeypatch):
    """In l2 the exact ends are fractions plus square roots of fractions."""
    rng = np.random.default_rng(7)
    network = chain(rng, 3, 4, 3, 3, 2)
    probe = LinearBound(network, domain=Box.cube(3, HALF), input_norm=norm, output=Norm.L1)
    centers = np.round(rng.uniform(-1, 1, size=(5, 3)) / probe.input_step)
    radii = np.round(rng.random(5) / probe.input_step)
    plain = ball_ranges(network, norm, centers, radii)[2]
    asked = []
    real = relaxation.rounded_up

    def doubtful(values, error, unit, exactly, closer):
        def logged(index):
            asked.append(exactly(index))
            return asked[-1]

        return real(values, 0.45 * unit, unit, logged)

    monkeypatch.setattr(relaxation, "rounded_up", doubtful)
    for before, after in zip(plain, ball_ranges(network, norm, centers, radii)[2], strict=True):
        assert np.array_equal(before.lower, after.lower)
        assert np.array_equal(before.upper, after.upper)
    assert len(asked) > 80
    assert all(isinstance(end, relaxation.Surd if norm is Norm.L2 else Fraction) for end in asked)
