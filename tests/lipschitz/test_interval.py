"""What is particular to the interval bound: exactness through one layer, residual sums, smooth
networks.
"""

from __future__ import annotations

import numpy as np
import pytest

from reticent.core import Box, Norm
from reticent.core.norms import operator_norm
from reticent.lipschitz import IntervalBound
from reticent.lipschitz.interval import build_forward, exact_maps, row_norms
from reticent.networks import Activation, ActivationKind, Affine, Network, Residual, affine_chain


@pytest.mark.parametrize(
    ("norm", "radius", "unstable"),
    [
        ("linf", 0.49, False),
        ("linf", 0.51, True),
        ("l2", 0.70, False),
        ("l2", 0.72, True),
        ("l1", 0.99, False),
        ("l1", 1.01, True),
    ],
)
def test_balls_meet_the_first_layer_exactly(norm, radius, unstable):
    """The kink x1 + x2 = 1 is at distance 0.5, 0.707 and 1 from the origin in the three norms."""
    network = affine_chain([[[1.0, 1.0]], [[1.0]]], [[-1.0], [0.0]])
    bound = IntervalBound(network, domain=Box.cube(2, 2.0), input_norm=Norm(norm), output=Norm.L1)
    assert (bound.bound(np.zeros((1, 2)), radius)[0] > 1e-3) == unstable


def test_residual_sum_of_affine_branches_is_the_exact_norm():
    rng = np.random.default_rng(0)
    first, branch = rng.normal(size=(4, 3)), 0.1 * rng.normal(size=(4, 4))
    layers = (Affine(first, np.zeros(4)), Residual((Affine(branch, np.zeros(4)),)))
    jacobian = (np.eye(4) + branch) @ first
    for position in (layers, (*layers, Residual(()))):
        factor = 2.0 if len(position) == 3 else 1.0
        bound = IntervalBound(
            Network(position, (3,)), domain=Box.cube(3, 1.0), input_norm=Norm.LINF, output=Norm.LINF
        )
        # The two paths are bounded apart and then added, so signs inside can be lost, but nothing
        # to rounding.
        apart = operator_norm((np.eye(4) + np.abs(branch)) @ np.abs(first), Norm.LINF, Norm.LINF)
        computed = float(bound.bound(np.zeros((1, 3)), 0.1)[0])
        assert (
            factor * operator_norm(jacobian, Norm.LINF, Norm.LINF)
            <= computed
            <= factor * apart * 1.0001
        )


@pytest.mark.parametrize("behind", [0, 1])
def test_residual_identity_branch_doubles(behind: int):
    """The product of layer norms, which caps a bound, is for blocks before a linear layer."""
    same = Affine(np.eye(2), np.zeros(2))
    network = Network((same, Residual((same,)), *[same] * behind), (2,))
    bound = IntervalBound(network, domain=Box.cube(2, 1.0), input_norm=Norm.LINF, output=Norm.LINF)
    assert bound.global_bound() == pytest.approx(2.0, rel=1e-5)


@pytest.mark.parametrize(
    ("kind", "point", "slope"),
    [
        ("tanh", 0.0, 1.0),
        ("sigmoid", 0.0, 0.25),
        ("softplus", 2.0, 1 / (1 + np.exp(-2.0))),
        ("gelu", 0.0, 0.5),
        ("tanh", 30.0, 0.0),
    ],
)
def test_smooth_networks_at_a_point(kind, point, slope):
    network = Network(
        (Affine([[1.0]], [0.0]), Activation(ActivationKind(kind)), Affine([[3.0]], [0.0])), (1,)
    )
    bound = IntervalBound(network, domain=Box.cube(1, 40.0), input_norm=Norm.LINF, output=Norm.L1)
    # A cell of the table is 2**-7 wide here.
    assert bound.bound([[point]], 0.0)[0] == pytest.approx(3 * slope, abs=3 * 0.01)


def test_smooth_networks_with_huge_inputs_keep_a_finite_bound():
    rng = np.random.default_rng(1)
    network = Network(
        (Affine(1e6 * rng.normal(size=(4, 3)), np.zeros(4)), Activation(ActivationKind.TANH)), (3,)
    )
    bound = IntervalBound(network, domain=Box.cube(3, 1.0), input_norm=Norm.LINF, output=Norm.LINF)
    assert bound.global_bound() <= np.abs(network.layers[0].weight).sum(axis=1).max() * 1.001
    assert bound.bound(np.ones((1, 3)), 1e-3)[0] <= 1e3  # far in the flat part


@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
def test_rows_without_weights_and_infinite_balls(norm):
    network = affine_chain([[[1.0, 0.0], [0.0, 0.0]], [[1.0, 1.0]]], [[0.0, 1.0], [0.0]])
    bound = IntervalBound(network, domain=Box.cube(2, 1.0), input_norm=norm, output=Norm.L2)
    region = bound.region(np.zeros((1, 2)), np.array([np.inf]))
    assert np.isfinite(region.radii).all()
    assert bound.global_bound() == pytest.approx(1.0, rel=1e-5)


def test_a_network_with_one_layer_of_norm_zero_is_constant_even_behind_a_wide_one():
    layers = (
        Affine(np.ones((2100, 2100)), np.zeros(2100)),
        Affine(np.zeros((1, 2100)), np.zeros(1)),
    )
    bound = IntervalBound(
        Network(layers, (2100,)), domain=Box.cube(2100, 1.0), input_norm=Norm.LINF, output=Norm.L1
    )
    assert bound.global_bound() == 0.0


def test_row_norms_of_a_long_row_cover_what_a_sum_of_squares_loses():
    weights = np.ones(2**18)
    weights[: 2**11] = 2.0**24
    layer = Affine(weights[None] * 2.0**-24, np.zeros(1))
    stages, _ = build_forward(Network((layer,), (2**18,)), Box.cube(2**18, 1.0))
    exact = sum(int(weight) ** 2 for weight in exact_maps(stages)[0].weight[0].tolist())
    assert int(row_norms(stages[0], Norm.L2).item()) ** 2 >= exact
