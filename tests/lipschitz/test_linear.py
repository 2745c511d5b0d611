"""The linear-relaxation bound: exact oracles, sampled Jacobians at 64 and 784 inputs, nested
regions in every norm.
"""

from __future__ import annotations

import numpy as np
import pytest

from reticent.core import Box, Norm
from reticent.lipschitz import IntervalBound, LinearBound, relaxation
from reticent.networks import affine_chain
from tests.lipschitz.conftest import jacobians
from tests.lipschitz.nested_regions import HALF, chain, directions, nested, violations

NORMS = [Norm.LINF, Norm.L2, Norm.L1]


def linear(network, norm=Norm.LINF, output=Norm.L1, half=HALF):
    domain = Box.cube(network.input_dimension, half)
    return LinearBound(network, domain=domain, input_norm=norm, output=output)


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


def wider(bound, count, seed):
    """How many pre-activation ranges of smaller regions leave those of larger ones."""
    outer, inner = nested(np.random.default_rng(seed), bound, count)
    return sum(
        int(((small.lower < large.lower) | (small.upper > large.upper)).sum())
        for small, large in zip(
            *(bound._forward.ranges(*bound._regions(part))[1] for part in (inner, outer)),
            strict=True,
        )
    )


NETWORKS = {
    "64 inputs": (64, 24, 20, 6),
    "784 inputs": (784, 20, 16, 4),
    "deep": (17, 12, 10, 9, 3),
}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    "counts",
    [
        {"l1": 60, "l2": 30, "spread": 20},
        pytest.param({"l1": 1200}, marks=pytest.mark.soak),
    ],
    ids=["quick", "soak"],
)
def test_isotone_on_nested_regions(name, norm, counts):
    network = chain(np.random.default_rng(2), *NETWORKS[name])
    for output, count in counts.items():
        wrong, strict = violations(linear(network, norm, output), count, 3)
        assert wrong == 0
        assert strict > 0.05


@pytest.mark.parametrize("norm", NORMS)
def test_ranges_are_isotone_on_nested_regions(norm):
    network = chain(np.random.default_rng(6), 64, 24, 20, 20, 6)
    assert wider(linear(network, norm), 200, 7) == 0


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
    real = relaxation.RelaxedForward._upper

    def seen(self, region, lines, *rest):
        drawn.append((region, lines[0]))
        return real(self, region, lines, *rest)

    monkeypatch.setattr(relaxation.RelaxedForward, "_upper", seen)
    bound.bound_over(bound.region_on_grid(centers, np.floor(radii)))
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
