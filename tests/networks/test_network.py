from __future__ import annotations

import itertools

import mpmath
import numpy as np
import pytest

from reticent.core import Box
from reticent.core.coded_rows import CodedRows
from reticent.core.errors import InvalidInput, UnsupportedNetwork
from reticent.networks import (
    Activation,
    ActivationKind,
    Affine,
    Convolution,
    Network,
    Residual,
    affine_chain,
)

PRECISE = {
    ActivationKind.RELU: lambda x: max(x, mpmath.mpf(0)),
    ActivationKind.TANH: mpmath.tanh,
    ActivationKind.SIGMOID: lambda x: 1 / (1 + mpmath.exp(-x)),
    ActivationKind.GELU: lambda x: x * mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
    ActivationKind.SOFTPLUS: lambda x: mpmath.log1p(mpmath.exp(x)),
}
"""Activations of mpmath's numbers."""


def exact_forward(layers, values):
    """The network in 50 digits on one point."""
    for layer in layers:
        if isinstance(layer, Activation):
            values = [PRECISE[layer.kind](value) for value in values]
        elif isinstance(layer, Residual):
            values = [
                a + b for a, b in zip(values, exact_forward(layer.branch, values), strict=True)
            ]
        else:
            values = [
                sum(
                    (mpmath.mpf(float(w)) * v for w, v in zip(row, values, strict=True)),
                    mpmath.mpf(float(b)),
                )
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
    ways = [
        network.forward(points),
        network.forward_each(points),
        network.forward_each(CodedRows.of(points)),
    ]
    worst = [0.0] * len(ways)
    with mpmath.workdps(50):
        for index, point in enumerate(points):
            exact = exact_forward(layers, [mpmath.mpf(float(x)) for x in point])
            for way, computed in enumerate(ways):
                errors = (
                    abs(float(mpmath.mpf(float(v)) - e))
                    for v, e in zip(computed[index], exact, strict=True)
                )
                worst[way] = max(worst[way], *errors)
    assert all(0 < error <= bound for error in worst)
    assert bound <= 1e-11 * max(scale, 1.0)


def test_rounding_error_covers_underflow():
    """Two factors of 1e-200 multiply to 0 in doubles; the next layer makes up for them, and the
    loss is charged.
    """
    weights = [[[1e-200]], [[1e-200]], [[1e300]], [[1e100]]]
    network = Network(tuple(Affine(np.array(weight), np.zeros(1)) for weight in weights), (1,))
    computed, exact = network.forward([[1.0]])[0, 0], 1.0
    assert computed == 0.0
    assert abs(computed - exact) <= network.rounding_error(Box.cube(1, 1.0)) < np.inf


@pytest.mark.parametrize("way", ["forward", "forward_each"])
def test_bad_inputs(way):
    network = Network((Affine(np.ones((1, 4)), np.zeros(1)),), (1, 2, 2))
    shapes = [np.ones((3, 5)), np.ones((3, 2, 2)), np.ones(4), np.ones((0, 4))]
    for inputs in (*shapes, np.full((1, 4), np.nan), [["a"] * 4]):
        with pytest.raises(InvalidInput, match="inputs"):
            getattr(network, way)(inputs)


def many_shapes(rng):
    """Widths at which libraries change their way of adding: none is a multiple of a vector's
    width in all of them.
    """
    relu = Activation(ActivationKind.RELU)
    for widths in (
        (8, 32, 8),
        (8, 64, 4),
        (5, 7, 9, 2),
        (113, 64, 64, 1),
        (20, 100, 2),
        (300, 40, 3),
    ):
        yield affine_chain(
            [rng.normal(size=(after, before)) for before, after in itertools.pairwise(widths)],
            [rng.normal(size=after) for after in widths[1:]],
        )
    convolution = Convolution(
        rng.normal(size=(4, 2, 2, 2)), rng.normal(size=4), input_shape=(2, 5, 5), padding=(1, 0)
    )
    branch = (
        Affine(rng.normal(size=(9, convolution.outputs)), np.zeros(9)),
        Activation(ActivationKind.TANH),
    )
    back = Affine(rng.normal(size=(convolution.outputs, 9)), np.zeros(convolution.outputs))
    yield Network((convolution, relu, Residual((*branch, back)), relu), (2, 5, 5))


def test_a_row_is_worth_the_same_alone_in_any_batch_and_at_any_place():
    rng = np.random.default_rng(0)
    for network in many_shapes(rng):
        rows = 60 if network.input_shape == (2, 5, 5) else 1100  # more than one block
        points = rng.normal(size=(rows, network.input_dimension))
        expected = network.forward_each(points)
        np.testing.assert_allclose(expected, network.forward(points), rtol=1e-11, atol=1e-11)
        for size in (1, 2, 3, 7, 30):
            found = np.concatenate(
                [
                    network.forward_each(points[:60][start : start + size])
                    for start in range(0, 60, size)
                ]
            )
            assert np.array_equal(found, expected[:60])
        order = rng.permutation(rows)
        assert np.array_equal(network.forward_each(points[order]), expected[order])
        # Rows that start at odd addresses, and rows that lie apart in memory.
        memory = np.empty(points.size + 1)
        memory[1:] = points.ravel()
        assert np.array_equal(network.forward_each(memory[1:].reshape(points.shape)), expected)
        assert np.array_equal(network.forward_each(np.asfortranarray(points)), expected)


def test_coded_rows_are_worth_what_their_entries_are():
    rng = np.random.default_rng(1)
    network = affine_chain(
        [rng.normal(size=(64, 50)), rng.normal(size=(3, 64))], [rng.normal(size=64), np.zeros(3)]
    )
    codes = np.stack(
        [rng.integers(4, 20, size=1500), rng.integers(20, 50, size=1500)], axis=1
    ).astype(np.int32)
    rows = CodedRows(rng.random((1500, 4)), np.arange(4, dtype=np.int32), codes, 0.7, 50)
    found = network.forward_each(rows)
    np.testing.assert_allclose(found, network.forward(rows.dense()), rtol=1e-12, atol=1e-12)
    assert np.array_equal(found, network.forward_each(CodedRows.of(rows.dense())))
    for size in (1, 2, 7, 30):
        parts = [
            network.forward_each(rows.part(slice(start, start + size)))
            for start in range(0, 60, size)
        ]
        assert np.array_equal(np.concatenate(parts)[:60], found[:60])
    behind_relu = Network(
        (Activation(ActivationKind.RELU), Affine(np.eye(50), np.zeros(50))), (50,)
    )
    with pytest.raises(
        UnsupportedNetwork, match="coded rows: their first layer takes whole rows only"
    ):
        behind_relu.forward_each(rows)
    with pytest.raises(
        UnsupportedNetwork, match="first layer takes 50 inputs, the rows have 51 coordinates"
    ):
        network.forward_each(CodedRows.of(rng.random((3, 51))))
