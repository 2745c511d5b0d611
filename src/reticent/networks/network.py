"""A certifiable network: a chain of layers in float64, with its own bound on its rounding error."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.checks import finite_array
from reticent.core.coded_rows import CodedRows
from reticent.core.errors import UnsupportedNetwork
from reticent.core.regions import Box
from reticent.networks.layers import (
    Activation,
    ActivationKind,
    Affine,
    Layer,
    Linear,
    Residual,
    width_after,
)

_UNIT_ROUNDOFF = 2.0**-53
_TINY = (
    2.0**-1022
)  # what one operation loses to underflow at most, whether denormal numbers are kept or not
_ROWS_AT_ONCE = 1024  # so that the values of a layer stay in the cache
_ACTIVATION_ULPS = 8.0  # tanh, erf, exp and log1p of numpy and scipy stay within a few ulps


@dataclass(frozen=True, eq=False)
class Network:
    """A chain of layers that maps (n, input_dimension) to (n, output_dimension).

    Attributes:
        layers: the chain of layers (``reticent.networks.layers``).
        input_shape: shape of one input before flattening, (d,) or (channels, height, width).
    """

    layers: tuple[Layer, ...]
    input_shape: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(self.layers))
        object.__setattr__(self, "input_shape", tuple(int(size) for size in self.input_shape))
        if not any(isinstance(layer, Linear) for layer in self.layers):
            raise UnsupportedNetwork("network: expected at least one linear layer")
        if self.output_dimension < 1:
            raise UnsupportedNetwork("network: expected at least one output")

    @property
    def input_dimension(self) -> int:
        """Number of flattened inputs."""
        return prod(self.input_shape)

    @cached_property
    def output_dimension(self) -> int:
        """Number of outputs."""
        width = self.input_dimension
        for layer in self.layers:
            width = width_after(layer, width)
        return width

    def forward(self, inputs: npt.ArrayLike) -> Array:
        """Return the network's value, shape (n, output_dimension), float64.

        Args:
            inputs: shape (n, input_dimension) or (n, *input_shape).

        Raises:
            InvalidInput: wrong shape, empty, NaN or infinite.
        """
        return _forward(self.layers, self._checked(inputs))

    def forward_each(self, inputs: npt.ArrayLike | CodedRows) -> Array:
        """Return ``forward`` with a row's value the same to the last bit alone, in any batch, and
        at any place in it.

        Releases use it. Matrix products are made row by row, each by one call of one shape on rows
        that start at one alignment, because the library orders the terms of a product by its shape.
        The error is within ``rounding_error``, which holds for any order of sums. Blocks of rows
        keep the values between two layers in the cache.

        Args:
            inputs: shape (n, input_dimension) or (n, *input_shape), or coded rows, taken to be
                finite, if the first layer is affine. Its product is then a sum over their entries
                that are not 0.

        Raises:
            InvalidInput: wrong shape, empty, NaN or infinite.
            UnsupportedNetwork: coded rows, and a first layer that does not take them.
        """
        if not isinstance(inputs, CodedRows):
            values = self._checked(inputs)
            return self._in_blocks(
                lambda rows: _forward_each(self.layers, values[rows]), len(values)
            )
        first, codes = self.layers[0], inputs
        if not isinstance(first, Affine) or first.inputs != codes.dimension:
            takes = f"{first.inputs} inputs" if isinstance(first, Affine) else "whole rows only"
            raise UnsupportedNetwork(
                f"coded rows: their first layer takes {takes}, the rows have {codes.dimension} "
                "coordinates; expected an affine "
                "layer of as many inputs"
            )
        return self._in_blocks(
            lambda rows: _forward_each(self.layers[1:], first.forward_coded(codes.part(rows))),
            len(codes),
        )

    def _checked(self, inputs: npt.ArrayLike) -> Array:
        if not isinstance(inputs, np.ndarray) or inputs.ndim > 2:
            values = finite_array(inputs, name="inputs")
            inputs = (
                values.reshape(len(values), -1) if values.shape[1:] == self.input_shape else values
            )
        return finite_array(inputs, name="inputs", ndim=2, columns=self.input_dimension)

    def _in_blocks(self, compute: Callable[[slice], Array], rows: int) -> Array:
        outputs = np.empty((rows, self.output_dimension))
        for start in range(0, rows, _ROWS_AT_ONCE):
            block = slice(start, start + _ROWS_AT_ONCE)
            outputs[block] = compute(block)
        return outputs

    def is_relu_chain(self) -> bool:
        """Return whether the network alternates linear layers and ReLU, starting and ending with a
        linear one.
        """
        if len(self.layers) % 2 == 0:
            return False
        return all(
            isinstance(layer, Linear)
            if index % 2 == 0
            else layer == Activation(ActivationKind.RELU)
            for index, layer in enumerate(self.layers)
        )

    def linear_layers(self) -> list[Linear]:
        """Return the linear layers of the chain, without the branches of residual sums."""
        return [layer for layer in self.layers if isinstance(layer, Linear)]

    def rounding_error(self, domain: Box) -> float:
        """Return a bound on |computed - exact| of ``forward`` per output, for inputs in ``domain``.

        By the standard model of floating-point sums, in any order, the error of a sum of k products
        is at most (k + 2) u times the sum of their magnitudes (Higham, Accuracy and Stability,
        section 3.1). Underflow adds up to 2^-1022 for each product and for each entry that is read
        as 0. Later layers may make that large, so it is carried along.
        """
        magnitude = np.maximum(np.abs(domain.lower), np.abs(domain.upper))[None, :]
        error = np.zeros_like(magnitude)
        _, error = _propagate_error(self.layers, magnitude, error)
        return float(2.0 * error.max())


def affine_chain(weights: Iterable[npt.ArrayLike], biases: Iterable[npt.ArrayLike]) -> Network:
    """Return the ReLU network with these weight matrices and biases.

    Example:
        >>> affine_chain([[[1.0], [-1.0]], [[1.0, 1.0]]], [[0.0, 0.0], [0.0]]).forward(
        ...     [[-2.0]]
        ... ).tolist()
        [[2.0]]
    """
    layers: list[Layer] = []
    for weight, bias in zip(weights, biases, strict=True):
        if layers:
            layers.append(Activation(ActivationKind.RELU))
        layers.append(
            Affine(np.asarray(weight, dtype=np.float64), np.asarray(bias, dtype=np.float64))
        )
    if not layers:
        raise UnsupportedNetwork("network: expected at least one linear layer")
    first = layers[0]
    assert isinstance(first, Affine)
    return Network(tuple(layers), (first.inputs,))


def _forward(layers: tuple[Layer, ...], values: Array) -> Array:
    for layer in layers:
        if isinstance(layer, Activation):
            values = layer.kind.apply(values)
        elif isinstance(layer, Residual):
            values = values + _forward(layer.branch, values)
        else:
            values = layer.forward(values)
    return values


def _forward_each(layers: tuple[Layer, ...], values: Array) -> Array:
    # bit-exact: linear layers take a row a call. The rest works entry by entry.
    for layer in layers:
        if isinstance(layer, Activation):
            values = layer.kind.apply(values)
        elif isinstance(layer, Residual):
            values = values + _forward_each(layer.branch, values)
        else:
            values = layer.forward_each(values)
    return values


def _propagate_error(
    layers: tuple[Layer, ...], magnitude: Array, error: Array
) -> tuple[Array, Array]:
    for layer in layers:
        if isinstance(layer, Activation):
            magnitude = magnitude + 1.0  # |activation(v)| <= |v| + 1 for every kind
            error = layer.kind.lipschitz * error
            if layer.kind is not ActivationKind.RELU:
                error = error + _ACTIVATION_ULPS * _UNIT_ROUNDOFF * magnitude
            error = error + 8.0 * _TINY
        elif isinstance(layer, Residual):
            inner, inner_error = _propagate_error(layer.branch, magnitude, error)
            magnitude = magnitude + inner
            error = error + inner_error + _UNIT_ROUNDOFF * magnitude + 4.0 * _TINY
        else:
            weight = np.abs(layer.weight)
            sums = layer.map(magnitude + error, weight) + np.abs(layer.bias)
            # A product that underflows, or a factor of it that counts as 0, moves a sum by this
            # much at most. The products of this bound itself may underflow too.
            lost = (
                (layer.fan_in + 2)
                * _TINY
                * (8.0 + float(weight.max(initial=0.0)) + float(magnitude.max(initial=0.0)))
            )
            error = layer.map(error, weight) + (layer.fan_in + 2) * _UNIT_ROUNDOFF * sums + lost
            magnitude = sums
    return magnitude, error
