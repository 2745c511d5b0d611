"""Layers against torch's, exact in any batch, and stored."""

from __future__ import annotations

import json

import mpmath
import numpy as np
import pytest
import torch

from reticent.core.errors import InvalidInput
from reticent.networks import (
    Activation,
    ActivationKind,
    Affine,
    Convolution,
    Network,
    Residual,
    average_pool,
)
from reticent.networks.layers import without_bias
from reticent.networks.serial import describe, rebuild
from reticent.networks.sorting import is_pair_sort, pair_sort
from tests.networks.test_network import PRECISE

CONVOLUTIONS = [
    ((4, 6, 5), (4, 4, 3, 2), (1, 1), (0, 0), 1),
    ((4, 6, 5), (2, 2, 3, 2), (2, 1), (1, 2), 2),
    ((4, 7, 5), (4, 1, 2, 2), (3, 2), (0, 1), 4),
    ((1, 5, 5), (3, 1, 5, 5), (1, 1), (2, 2), 1),
    ((2, 4, 4), (2, 2, 1, 1), (2, 2), (0, 0), 1),
]


@pytest.mark.parametrize(("shape", "size", "stride", "padding", "groups"), CONVOLUTIONS)
def test_convolution_is_torchs_and_its_transpose_is_the_adjoint(
    shape, size, stride, padding, groups
):
    rng = np.random.default_rng(0)
    weight, bias = rng.normal(size=size), rng.normal(size=size[0])
    layer = Convolution(
        weight, bias, input_shape=shape, stride=stride, padding=padding, groups=groups
    )
    inputs, gradients = rng.normal(size=(3, layer.inputs)), rng.normal(size=(3, layer.outputs))
    expected = torch.nn.functional.conv2d(
        torch.from_numpy(inputs.reshape(3, *shape)),
        torch.from_numpy(weight),
        torch.from_numpy(bias),
        stride,
        padding,
        1,
        groups,
    )
    assert layer.forward(inputs) == pytest.approx(expected.numpy().reshape(3, -1))
    assert layer.map(inputs) == pytest.approx(inputs @ layer.dense().T)
    assert layer.transposed_map(gradients) == pytest.approx(gradients @ layer.dense())
    used = layer.dense() != 0
    assert used.sum(axis=1).max() <= layer.fan_in
    assert used.sum(axis=0).max() <= layer.fan_out
    assert np.array_equal(without_bias(layer).forward(inputs), layer.map(inputs))


def test_affine():
    rng = np.random.default_rng(1)
    layer = Affine(rng.normal(size=(3, 2)), rng.normal(size=3))
    inputs = rng.normal(size=(5, 2))
    assert layer.forward(inputs) == pytest.approx(inputs @ layer.weight.T + layer.bias)
    assert np.array_equal(layer.dense(), layer.weight)
    assert (layer.inputs, layer.outputs, layer.fan_in, layer.fan_out) == (2, 3, 2, 3)


def test_average_pool_is_torchs():
    images = np.random.default_rng(2).normal(size=(2, 3, 5, 6))
    for kernel, stride in (((2, 2), None), ((3, 2), (1, 3))):
        expected = (
            torch.nn.functional.avg_pool2d(torch.from_numpy(images), kernel, stride)
            .numpy()
            .reshape(2, -1)
        )
        assert average_pool((3, 5, 6), kernel, stride).forward(
            images.reshape(2, -1)
        ) == pytest.approx(expected)


@pytest.mark.parametrize("kind", list(ActivationKind))
def test_activations_and_slopes(kind):
    values = np.array([-700.0, -30.0, -2.0, -1e-9, 1e-9, 0.3, 2.0, 30.0, 700.0])
    function = PRECISE[kind]
    with mpmath.workdps(60):
        expected = [float(function(mpmath.mpf(x))) for x in values]
        step = mpmath.mpf(10) ** -25
        slopes = [
            float((function(mpmath.mpf(x) + step) - function(mpmath.mpf(x) - step)) / (2 * step))
            for x in values
        ]
    assert kind.apply(values) == pytest.approx(expected, rel=1e-13, abs=1e-13)
    assert kind.slope(values) == pytest.approx(slopes, abs=1e-13)
    dense = np.linspace(-40, 40, 100_001)
    assert np.abs(kind.slope(dense)).max() <= kind.lipschitz


@pytest.mark.parametrize("kernel", [(3, 3), (5, 5), (2, 7)])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_whole_numbers_of_fifty_bits_are_convolved_exactly(kernel, groups):
    """As in certificates: products of 2^24 and 2^20, sums below 2^53. A transformed convolution
    would have to round.
    """
    random = np.random.default_rng(sum(kernel))
    weight = random.integers(-(2**24), 2**24, (4, 4 // groups, *kernel))
    layer = Convolution(
        weight.astype(float), np.zeros(4), input_shape=(4, 9, 8), padding=(1, 2), groups=groups
    )
    for apply, width in ((layer.map, layer.inputs), (layer.transposed_map, layer.outputs)):
        values = random.integers(-(2**20), 2**20, (3, width))
        matrix = layer.dense() if width == layer.inputs else layer.dense().T
        exact = values.astype(object) @ matrix.astype(int).astype(object).T
        assert apply(values.astype(float)).tolist() == exact.tolist()


def test_no_library_convolution_is_asked(monkeypatch):
    for name in ("conv2d", "conv_transpose2d"):
        monkeypatch.setattr(torch.nn.functional, name, None)
        monkeypatch.setattr(torch, name, None)
    layer = Convolution(np.ones((2, 1, 2, 2)), np.zeros(2), input_shape=(1, 4, 4))
    assert layer.map(np.ones((1, 16))).tolist() == [[4.0] * 18]
    assert layer.transposed_map(np.ones((1, 18))).sum() == 72.0


def test_batches_that_are_split_or_empty_give_the_same_rows(monkeypatch):
    random = np.random.default_rng(0)
    layer = Convolution(
        random.normal(size=(3, 2, 3, 3)), np.zeros(3), input_shape=(2, 6, 5), stride=(2, 1)
    )
    values, gradients = (
        random.normal(size=(7, layer.inputs)),
        random.normal(size=(7, layer.outputs)),
    )
    whole = layer.map(values), layer.transposed_map(gradients)
    monkeypatch.setattr("reticent.networks.layers._PATCH_NUMBERS", 1)
    assert np.allclose(layer.map(values), whole[0], rtol=1e-13, atol=1e-13)
    assert np.allclose(layer.transposed_map(gradients), whole[1], rtol=1e-13, atol=1e-13)
    assert layer.map(values[:0]).shape == (0, layer.outputs)
    assert layer.transposed_map(gradients[:0]).shape == (0, layer.inputs)


def test_every_layer_survives():
    rng = np.random.default_rng(0)
    convolution = Convolution(
        rng.normal(size=(2, 1, 2, 2)),
        rng.normal(size=2),
        input_shape=(2, 4, 3),
        stride=(2, 1),
        padding=(1, 0),
        groups=2,
    )
    size = convolution.outputs
    branch = (
        Affine(rng.normal(size=(size, size)), rng.normal(size=size)),
        Activation(ActivationKind.GELU),
    )
    network = Network(
        (convolution, Residual(branch), Affine(rng.normal(size=(2, size)), np.zeros(2))), (2, 4, 3)
    )
    structure, arrays = describe(network, "f")
    again = rebuild(json.loads(json.dumps(structure)), arrays, "f")
    points = rng.normal(size=(5, 24))
    assert np.array_equal(again.forward(points), network.forward(points))
    for missing in arrays:
        with pytest.raises(InvalidInput, match="network: not a description"):
            rebuild(
                structure, {name: array for name, array in arrays.items() if name != missing}, "f"
            )
    with pytest.raises(InvalidInput, match="network: not a description"):
        rebuild({}, arrays, "f")


def test_pairs_are_sorted() -> None:
    branch = pair_sort(4).branch
    rows = np.array([[1.0, 3.0, 5.0, 2.0]])
    moved = rows + branch[2].forward(branch[1].kind.apply(branch[0].forward(rows)))
    assert moved.tolist() == [[3.0, 1.0, 5.0, 2.0]]


def test_only_a_sort_of_pairs_is_taken_for_one() -> None:
    layer = pair_sort(6)
    assert is_pair_sort(layer)
    first, relu, last = layer.branch
    bent = last.weight.copy()
    bent[0, 0] += 2.0**-52
    assert not is_pair_sort(Residual((first, relu, Affine(bent, last.bias))))
    assert not is_pair_sort(Residual((first, relu, Affine(last.weight, last.bias + 1.0))))
    assert not is_pair_sort(Residual((first, Activation(ActivationKind.TANH), last)))
    assert not is_pair_sort(Residual((first, relu)))
    assert not is_pair_sort(first)
