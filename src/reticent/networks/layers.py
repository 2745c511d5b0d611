"""The layers that can be certified, as plain float64 arrays that act on flattened batches.

Every layer maps a batch (n, inputs) to (n, outputs). Linear layers (affine maps, convolutions,
average pools) share one interface, so that a bound is written once for all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from reticent.core.arrays import Array
from reticent.core.checks import finite_array
from reticent.core.coded_rows import CodedRows
from reticent.core.errors import InvalidInput, UnsupportedNetwork
from reticent.core.extras import require

if TYPE_CHECKING:
    import torch


_ALIGNMENT = 64  # bytes, of a cache line and of the widest vector registers
_PATCH_NUMBERS = 2**21  # of unfolded pictures in memory at once, 16 MiB


class ActivationKind(StrEnum):
    """Activations with a known range of values and of slopes on every interval."""

    RELU = "relu"
    TANH = "tanh"
    SIGMOID = "sigmoid"
    GELU = "gelu"
    SOFTPLUS = "softplus"

    def apply(self, values: Array) -> Array:
        """Return the activation, entry by entry."""
        if self is ActivationKind.RELU:
            return np.maximum(values, 0.0)
        if self is ActivationKind.TANH:
            return np.tanh(values)
        if self is ActivationKind.SIGMOID:
            return np.asarray(0.5 * (1.0 + np.tanh(0.5 * values)))
        if self is ActivationKind.GELU:
            return np.asarray(values * _gaussian_below(values))
        return np.logaddexp(0.0, values)

    def slope(self, values: Array) -> Array:
        """Return the derivative, entry by entry (0 at the kink of ReLU)."""
        if self is ActivationKind.RELU:
            return (values > 0).astype(np.float64)
        if self is ActivationKind.TANH:
            return np.asarray(1.0 - np.square(np.tanh(values)))
        if self is ActivationKind.SIGMOID:
            return np.asarray(0.25 * (1.0 - np.square(np.tanh(0.5 * values))))
        if self is ActivationKind.GELU:
            density = np.exp(-0.5 * np.square(values)) / np.sqrt(2.0 * np.pi)
            return np.asarray(_gaussian_below(values) + values * density)
        return ActivationKind.SIGMOID.apply(values)

    @property
    def lipschitz(self) -> float:
        """Bound on the absolute slope anywhere."""
        return {"sigmoid": 0.25, "gelu": 1.13}.get(self.value, 1.0)


@dataclass(frozen=True, eq=False)
class Linear(ABC):
    """A linear map plus a bias, on flattened arrays.

    Attributes:
        weight: the coefficients, in the layout of the subclass.
        bias: shape (outputs,).
    """

    weight: Array
    bias: Array

    @property
    @abstractmethod
    def inputs(self) -> int:
        """Flattened input width."""

    @property
    @abstractmethod
    def outputs(self) -> int:
        """Flattened output width."""

    @property
    @abstractmethod
    def fan_in(self) -> int:
        """Largest number of terms summed for one output."""

    @property
    @abstractmethod
    def fan_out(self) -> int:
        """Largest number of outputs that one input reaches."""

    @abstractmethod
    def map(self, values: Array, weight: Array | None = None) -> Array:
        """Return W x for a batch (n, inputs), without the bias. ``weight`` replaces W."""

    @abstractmethod
    def transposed_map(self, values: Array, weight: Array | None = None) -> Array:
        """Return W' g for a batch (n, outputs). ``weight`` replaces W."""

    def forward(self, values: Array) -> Array:
        """Return W x + b for a batch (n, inputs)."""
        return np.asarray(self.map(values) + self.bias)

    def forward_each(self, values: Array) -> Array:
        """Return ``forward`` of every row by itself. A row's result does not depend on the others,
        to the last bit.
        """
        # bit-exact: one row a call from one alignment, since the library orders a product's sums by
        # its shape and by where it starts.
        rows = _aligned(values)
        return np.concatenate([self.forward(rows[index : index + 1]) for index in range(len(rows))])

    def dense(self) -> Array:
        """Return W as a matrix, shape (outputs, inputs)."""
        return np.ascontiguousarray(self.map(np.eye(self.inputs)).T)


@dataclass(frozen=True, eq=False)
class Affine(Linear):
    """x -> W x + b with W of shape (outputs, inputs)."""

    def __post_init__(self) -> None:
        weight = finite_array(self.weight, name="affine weight", ndim=2)
        bias = finite_array(self.bias, name="affine bias", ndim=1)
        if len(bias) != len(weight):
            raise InvalidInput(
                f"affine: weight has {len(weight)} outputs, bias {len(bias)}; expected the same"
            )
        object.__setattr__(self, "weight", weight)
        object.__setattr__(self, "bias", bias)

    @property
    @override
    def inputs(self) -> int:
        return int(self.weight.shape[1])

    @property
    @override
    def outputs(self) -> int:
        return int(self.weight.shape[0])

    @property
    @override
    def fan_in(self) -> int:
        return self.inputs

    @property
    @override
    def fan_out(self) -> int:
        return self.outputs

    @override
    def map(self, values: Array, weight: Array | None = None) -> Array:
        return np.asarray(values @ (self.weight if weight is None else weight).T)

    @override
    def forward_each(self, values: Array) -> Array:
        # A stack of row vectors: numpy multiplies each by the matrix in a call of its own.
        products = _aligned_empty(len(values), self.outputs)
        np.matmul(_aligned(values)[:, None, :], self.weight.T, out=products[:, None, :])
        return np.asarray(products + self.bias)

    def forward_coded(self, rows: CodedRows) -> Array:
        """Return W x + b for coded rows of ``inputs`` coordinates, every row by itself."""
        return np.asarray(rows.times(self._columns) + self.bias)

    @cached_property
    def _columns(self) -> Array:
        """The weight of each input in one place, where rows of few of them find it."""
        return np.ascontiguousarray(self.weight.T)

    @override
    def transposed_map(self, values: Array, weight: Array | None = None) -> Array:
        return np.asarray(values @ (self.weight if weight is None else weight))


@dataclass(frozen=True, eq=False)
class Convolution(Linear):
    """A two-dimensional convolution with weight (out_channels, in_channels / groups, height,
    width).

    Attributes:
        input_shape: (channels, height, width) of one input.
        stride, padding: one number per axis. Padding is with zeros.
        groups: number of channel groups. An average pool is a convolution with one group per
            channel.
    """

    input_shape: tuple[int, int, int] = (1, 1, 1)
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    groups: int = 1
    output_shape: tuple[int, int, int] = field(init=False)

    def __post_init__(self) -> None:
        weight = finite_array(self.weight, name="convolution weight", ndim=4)
        channels, height, width = self.input_shape
        if weight.shape[1] * self.groups != channels:
            raise InvalidInput(
                f"convolution: expected {weight.shape[1] * self.groups} input channels, got "
                f"{channels}"
            )
        if self.groups < 1 or len(weight) % self.groups:
            raise InvalidInput(
                f"convolution: expected output channels in {self.groups} equal groups, got "
                f"{len(weight)}"
            )
        if min(self.stride) < 1 or min(self.padding) < 0:
            raise InvalidInput(
                "convolution: expected stride of at least 1 and padding of at least 0, got "
                f"{self.stride} and {self.padding}"
            )
        sizes = [
            (size + 2 * pad - kernel) // step + 1
            for size, pad, kernel, step in zip(
                (height, width), self.padding, weight.shape[2:], self.stride, strict=True
            )
        ]
        if min(sizes) < 1:
            raise InvalidInput(
                f"convolution: kernel {weight.shape[2:]} does not fit "
                f"input_shape={self.input_shape}"
            )
        object.__setattr__(self, "weight", weight)
        object.__setattr__(self, "output_shape", (weight.shape[0], sizes[0], sizes[1]))
        bias = finite_array(self.bias, name="convolution bias", ndim=1)
        if len(bias) == weight.shape[0] != self.outputs:
            bias = np.repeat(bias, sizes[0] * sizes[1])
        if len(bias) != self.outputs:
            raise InvalidInput(f"convolution: expected {weight.shape[0]} biases, got {len(bias)}")
        object.__setattr__(self, "bias", bias)

    @property
    @override
    def inputs(self) -> int:
        return prod(self.input_shape)

    @property
    @override
    def outputs(self) -> int:
        return prod(self.output_shape)

    @property
    @override
    def fan_in(self) -> int:
        return prod(self.weight.shape[1:])

    @property
    @override
    def fan_out(self) -> int:
        return int(prod(self.weight.shape[2:]) * self.weight.shape[0] // self.groups)

    @override
    def map(self, values: Array, weight: Array | None = None) -> Array:
        torch = require("torch", extra="networks")
        unfold = torch.nn.functional.unfold
        images = torch.from_numpy(np.ascontiguousarray(values).reshape(-1, *self.input_shape))
        kernel = self._grouped(weight)
        parts = [torch.zeros((0, self.outputs), dtype=torch.float64)]
        for part in self._parts(images):
            patches = unfold(part, self._window, padding=self.padding, stride=self.stride)
            mapped = kernel @ patches.reshape(len(part), self.groups, kernel.shape[2], -1)
            parts.append(mapped.reshape(len(part), -1))
        return np.asarray(torch.cat(parts).numpy())

    @override
    def transposed_map(self, values: Array, weight: Array | None = None) -> Array:
        torch = require("torch", extra="networks")
        fold = torch.nn.functional.fold
        images = torch.from_numpy(np.ascontiguousarray(values).reshape(-1, *self.output_shape))
        kernel = self._grouped(weight).transpose(1, 2)
        parts = [torch.zeros((0, self.inputs), dtype=torch.float64)]
        for part in self._parts(images):
            patches = kernel @ part.reshape(len(part), self.groups, kernel.shape[2], -1)
            patches = patches.reshape(len(part), -1, patches.shape[-1])
            back = fold(
                patches,
                self.input_shape[1:],
                self._window,
                padding=self.padding,
                stride=self.stride,
            )
            parts.append(back.reshape(len(part), -1))
        return np.asarray(torch.cat(parts).numpy())

    # A library's convolution may take a Winograd or Fourier path, whose sums have other terms, so
    # whole numbers would be rounded. Patches are copies, and a matrix product sums the plain
    # products, in whatever order.

    @property
    def _window(self) -> tuple[int, int]:
        return int(self.weight.shape[2]), int(self.weight.shape[3])

    @property
    def _images_at_once(self) -> int:
        patches = self.input_shape[0] * prod(self._window) * prod(self.output_shape[1:])
        return max(1, _PATCH_NUMBERS // patches)

    def _parts(self, images: torch.Tensor) -> Iterator[torch.Tensor]:
        for start in range(0, len(images), self._images_at_once):
            yield images[start : start + self._images_at_once]

    def _grouped(self, weight: Array | None) -> torch.Tensor:
        """Return the kernel as one matrix per group, shape (groups, outputs per group, inputs of a
        patch).
        """
        from_numpy = require("torch", extra="networks").from_numpy
        kernel: torch.Tensor = from_numpy(
            np.ascontiguousarray(self.weight if weight is None else weight)
        )
        return kernel.reshape(self.groups, len(kernel) // self.groups, -1)


def _gaussian_below(values: Array) -> Array:
    """Return the standard Gaussian's distribution function."""
    from scipy.special import erf

    return np.asarray(0.5 * (1.0 + erf(values / np.sqrt(2.0))))


def _aligned(values: Array) -> Array:
    """Return a copy whose rows all start at one alignment in memory. Some libraries choose their
    order of sums by it.
    """
    rows = _aligned_empty(*values.shape)
    rows[...] = values
    return rows


def _aligned_empty(rows: int, width: int) -> Array:
    per_line = _ALIGNMENT // 8
    stride = -(-width // per_line) * per_line
    memory = np.empty(rows * stride + per_line)
    start = -(memory.ctypes.data // 8) % per_line
    return memory[start : start + rows * stride].reshape(rows, stride)[:, :width]


def average_pool(
    input_shape: tuple[int, int, int],
    kernel: tuple[int, int],
    stride: tuple[int, int] | None = None,
) -> Convolution:
    """Return average pooling without padding, as a grouped convolution.

    Args:
        input_shape: (channels, height, width).
        kernel: window height and width.
        stride: step of the window, or None for the kernel's size.
    """
    channels = input_shape[0]
    weight = np.full((channels, 1, *kernel), 1.0 / prod(kernel))
    return Convolution(
        weight,
        np.zeros(channels),
        input_shape=input_shape,
        stride=stride or kernel,
        groups=channels,
    )


@dataclass(frozen=True)
class Activation:
    """An activation applied to every entry."""

    kind: ActivationKind


@dataclass(frozen=True, eq=False)
class Residual:
    """x -> x + branch(x)."""

    branch: tuple[Layer, ...]


Layer = Linear | Activation | Residual


def without_bias(layer: Linear) -> Linear:
    """Return the same linear map with a zero bias."""
    return replace(layer, bias=np.zeros_like(layer.bias))


def width_after(layer: Layer, width: int) -> int:
    """Return the flattened width behind ``layer`` when ``width`` values enter.

    Raises:
        UnsupportedNetwork: the layer does not accept that width.
    """
    if isinstance(layer, Activation):
        return width
    if isinstance(layer, Residual):
        inner = width
        for part in layer.branch:
            inner = width_after(part, inner)
        if inner != width:
            raise UnsupportedNetwork(
                f"residual sum: the branch turns {width} values into {inner}; expected {width}"
            )
        return width
    if layer.inputs != width:
        raise UnsupportedNetwork(
            f"{type(layer).__name__}: expects {layer.inputs} inputs, the layer before gives {width}"
        )
    return layer.outputs
