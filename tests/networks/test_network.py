from __future__ import annotations

import mpmath
import numpy as np
import pytest
import torch
from torch import nn

from reticent.core import Box
from reticent.core.errors import InvalidInput, UnsupportedNetwork
from reticent.networks import Activation, ActivationKind, Affine, Network, Residual, affine_chain, from_torch


def exact_forward(layers, values):
    """The network in 50 digits on one point."""
    for layer in layers:
        if isinstance(layer, Activation):
            functions = {
                ActivationKind.RELU: lambda x: max(x, mpmath.mpf(0)),
                ActivationKind.TANH: mpmath.tanh,
                ActivationKind.SIGMOID: lambda x: 1 / (1 + mpmath.exp(-x)),
                ActivationKind.GELU: lambda x: x * mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
                ActivationKind.SOFTPLUS: lambda x: mpmath.log1p(mpmath.exp(x)),
            }
            values = [functions[layer.kind](value) for value in values]
        elif isinstance(layer, Residual):
            values = [a + b for a, b in zip(values, exact_forward(layer.branch, values), strict=True)]
        else:
            values = [
                sum((mpmath.mpf(float(w)) * v for w, v in zip(row, values, strict=True)), mpmath.mpf(float(b)))
                for row, b in zip(layer.dense(), layer.bias, strict=True)
            ]
    return values


@pytest.mark.parametrize("kind", list(ActivationKind))
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_rounding_error_is_a_bound(kind, scale):
    rng = np.random.default_rng(0)
    branch = Residual((Affine(rng.normal(size=(7, 7)), rng.normal(size=7)), Activation(kind)))
    layers = (
        Affine(scale * rng.normal(size=(7, 5)), rng.normal(size=7)),
        Activation(kind),
        branch,
        Affine(rng.normal(size=(3, 7)), np.ones(3)),
    )
    network = Network(layers, (5,))
    bound = network.rounding_error(Box.cube(5, 2.0))
    points = rng.uniform(-2, 2, size=(25, 5))
    points[0] = 2.0
    computed = network.forward(points)
    worst = 0.0
    with mpmath.workdps(50):
        for point, value in zip(points, computed, strict=True):
            exact = exact_forward(layers, [mpmath.mpf(float(x)) for x in point])
            worst = max(worst, *(abs(float(mpmath.mpf(float(v)) - e)) for v, e in zip(value, exact, strict=True)))
    assert 0 < worst <= bound
    assert bound <= 1e-11 * max(scale, 1.0)


def test_rounding_error_covers_underflow():
    """Two factors of 1e-200 multiply to 0 in doubles; the next layer makes up for them, and the loss is charged."""
    weights = [[[1e-200]], [[1e-200]], [[1e300]], [[1e100]]]
    network = Network(tuple(Affine(np.array(weight), np.zeros(1)) for weight in weights), (1,))
    computed, exact = network.forward([[1.0]])[0, 0], 1.0
    assert computed == 0.0
    assert abs(computed - exact) <= network.rounding_error(Box.cube(1, 1.0)) < np.inf


def test_forward_reads_flat_and_shaped_inputs():
    network = Network((Affine(np.ones((1, 4)), np.zeros(1)),), (1, 2, 2))
    assert network.forward(np.ones((3, 1, 2, 2))).tolist() == [[4.0]] * 3
    assert network.forward(np.ones((3, 4))).tolist() == [[4.0]] * 3
    assert network.forward(np.ones((3, 4), dtype=np.float32)).dtype == np.float64
    frozen = np.ones((3, 4))
    frozen.flags.writeable = False
    assert network.forward(frozen).tolist() == [[4.0]] * 3


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (np.ones((3, 5)), "inputs: expected 4 features"),
        (np.ones((3, 2, 2)), "inputs: expected 2 axes"),
        (np.ones(4), "inputs: expected 2 axes"),
        (np.ones((0, 4)), "inputs: expected at least one value"),
        (np.full((1, 4), np.nan), "inputs: contains NaN"),
        ([["a"] * 4], "inputs: expected real numbers"),
    ],
)
def test_bad_inputs(inputs, message):
    with pytest.raises(InvalidInput) as caught:
        Network((Affine(np.ones((1, 4)), np.zeros(1)),), (1, 2, 2)).forward(inputs)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("layers", "shape", "message"),
    [
        ((), (2,), "network: expected at least one linear layer"),
        ((Activation(ActivationKind.RELU),), (2,), "network: expected at least one linear layer"),
        ((Affine(np.ones((1, 4)), np.zeros(1)),), (3,), "Affine: expects 4 inputs, the layer before gives 3"),
    ],
)
def test_bad_networks(layers, shape, message):
    with pytest.raises(UnsupportedNetwork) as caught:
        Network(layers, shape)
    assert str(caught.value).startswith(message)


def test_relu_chains():
    affine, relu, tanh = Affine(np.eye(2), np.zeros(2)), Activation(ActivationKind.RELU), Activation(ActivationKind.TANH)
    chains = {(affine,): True, (affine, relu, affine): True, (affine, relu): False, (affine, tanh, affine): False}
    chains |= {(affine, affine): False, (relu, affine): False, (affine, relu, relu, affine): False}
    for layers, expected in chains.items():
        assert Network(layers, (2,)).is_relu_chain() == expected


def test_affine_chain_of_nothing():
    with pytest.raises(UnsupportedNetwork, match="at least one linear layer"):
        affine_chain([], [])


ROW_BY_ROW = {
    "affine": nn.Sequential(nn.Linear(36, 50), nn.ReLU(), nn.Linear(50, 7)),
    "smooth": nn.Sequential(nn.Linear(36, 20), nn.GELU(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 3), nn.Softplus()),
    "convolutional": nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(16, 5), nn.Sigmoid()),
}


@pytest.mark.parametrize("name", ROW_BY_ROW)
def test_each_row_has_one_value_whatever_stands_beside_it(name: str) -> None:
    torch.manual_seed(0)
    network = from_torch(ROW_BY_ROW[name], (1, 6, 6) if name == "convolutional" else (36,))
    rows = np.random.default_rng(0).normal(size=(1100, 36))
    whole = network.forward_each(rows)
    np.testing.assert_allclose(whole, network.forward(rows), rtol=0, atol=network.rounding_error(Box.cube(36, 6.0)))
    for part in (slice(0, 1), slice(511, 514), slice(3, 900), slice(None, None, -1)):
        np.testing.assert_array_equal(network.forward_each(rows[part]), whole[part])
