"""Conversion of a torch module to the plain description that can be certified, and back."""

from __future__ import annotations

from math import prod

import numpy as np
import torch
from torch import nn

from reticent.core.arrays import Array
from reticent.core.errors import InvalidInput, UnsupportedNetwork
from reticent.networks.layers import (
    Activation,
    ActivationKind,
    Affine,
    Convolution,
    Layer,
    Linear,
    Residual,
    average_pool,
)
from reticent.networks.network import Network

SUPPORTED_MODULES = (
    "Linear, Conv2d (no dilation, zero padding), AvgPool2d (no padding), BatchNorm1d and "
    "BatchNorm2d (in eval mode), "
    "ReLU, Tanh, Sigmoid, GELU (exact), Softplus (beta 1), Flatten, Unflatten, Identity, "
    "Dropout, Sequential, ResidualSum"
)

_ACTIVATIONS: dict[type[nn.Module], ActivationKind] = {
    nn.ReLU: ActivationKind.RELU,
    nn.Tanh: ActivationKind.TANH,
    nn.Sigmoid: ActivationKind.SIGMOID,
    nn.GELU: ActivationKind.GELU,
    nn.Softplus: ActivationKind.SOFTPLUS,
}
_UNCHANGED = (nn.Identity, nn.Dropout, nn.Dropout2d)


class ResidualSum(nn.Module):
    """x -> x + branch(x), the form in which a residual block can be certified."""

    def __init__(self, branch: nn.Module) -> None:
        super().__init__()
        self.branch = branch

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the sum, of the shape of ``inputs``."""
        result: torch.Tensor = inputs + self.branch(inputs)
        return result


def from_torch(module: nn.Module, input_shape: tuple[int, ...]) -> Network:
    """Return the certifiable description of ``module`` in eval mode.

    Args:
        module: module built from the supported layers. Its parameters are copied to float64.
        input_shape: shape of one input, (d,) or (channels, height, width).

    Raises:
        UnsupportedNetwork: a layer that cannot be certified. The message names the layer and the
            supported list.
        InvalidInput: a layer does not fit the shape that reaches it, or a weight is not finite.

    Example:
        >>> from_torch(
        ...     nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)), (3,)
        ... ).output_dimension
        2
    """
    shape = tuple(input_shape)
    if len(shape) not in {1, 3} or not all(isinstance(size, int) and size > 0 for size in shape):
        raise InvalidInput(
            f"input_shape={input_shape!r}: expected (d,) or (channels, height, width)"
        )
    if not isinstance(module, nn.Module):
        raise InvalidInput(f"module: expected a torch.nn.Module, got {type(module).__name__}")
    layers, _ = _read(module, "", shape)
    return Network(tuple(layers), shape)


_KNOWN: tuple[type[nn.Module], ...] = (
    *(
        nn.Sequential,
        ResidualSum,
        nn.Linear,
        nn.Conv2d,
        nn.AvgPool2d,
        nn.BatchNorm1d,
        nn.BatchNorm2d,
    ),
    *(*_UNCHANGED, nn.Flatten, nn.Unflatten),
)


def to_torch(network: Network) -> nn.Sequential:
    """Return a float64 torch module with the values of ``network``, for gradients through it."""
    modules: list[nn.Module] = [nn.Flatten()] if len(network.input_shape) > 1 else []
    modules += [_LayerModule(layer) for layer in network.layers]
    return nn.Sequential(*modules)


class _LayerModule(nn.Module):
    """One certifiable layer as a torch module on flattened float64 batches."""

    def __init__(self, layer: Layer) -> None:
        super().__init__()
        self._layer = layer
        self._branch = (
            nn.Sequential(*map(_LayerModule, layer.branch))
            if isinstance(layer, Residual)
            else nn.Identity()
        )
        if isinstance(layer, Linear):
            self.register_buffer("weight", torch.from_numpy(layer.weight))
            self.register_buffer("bias", torch.from_numpy(layer.bias))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        layer = self._layer
        if isinstance(layer, Residual):
            return inputs + self._branch(inputs)  # type: ignore[no-any-return]
        if isinstance(layer, Affine):
            return nn.functional.linear(inputs, self.weight, self.bias)  # type: ignore[arg-type]
        if isinstance(layer, Convolution):
            images = inputs.reshape(-1, *layer.input_shape)
            kernel, stride, padding = self.weight, layer.stride, layer.padding
            mapped = nn.functional.conv2d(images, kernel, None, stride, padding, 1, layer.groups)  # type: ignore[arg-type]
            return mapped.flatten(1) + self.bias  # type: ignore[operator]
        assert isinstance(layer, Activation)
        functions = {
            ActivationKind.RELU: torch.relu,
            ActivationKind.TANH: torch.tanh,
            ActivationKind.SIGMOID: torch.sigmoid,
            ActivationKind.GELU: nn.functional.gelu,
            ActivationKind.SOFTPLUS: nn.functional.softplus,
        }
        return functions[layer.kind](inputs)


def _read(
    module: nn.Module, name: str, shape: tuple[int, ...]
) -> tuple[list[Layer], tuple[int, ...]]:
    label = f"{name or 'module'} ({type(module).__name__})"
    _check_forward(module, label)
    if isinstance(module, nn.Sequential):
        layers: list[Layer] = []
        for child_name, child in module.named_children():
            added, shape = _read(child, f"{name}.{child_name}".lstrip("."), shape)
            layers += added
        return layers, shape
    if isinstance(module, ResidualSum):
        branch, after = _read(module.branch, f"{name}.branch".lstrip("."), shape)
        if prod(after) != prod(shape):
            raise UnsupportedNetwork(
                f"{label}: the branch turns shape {shape} into {after}; expected the same size"
            )
        return [Residual(tuple(branch))], shape
    if isinstance(module, _UNCHANGED):
        return [], shape
    if isinstance(module, nn.Flatten | nn.Unflatten):
        return [], _reshaped(module, label, shape)
    if type(module) in _ACTIVATIONS:
        _check_activation(module, label)
        return [Activation(_ACTIVATIONS[type(module)])], shape
    if isinstance(module, nn.Linear):
        if prod(shape) != module.in_features or shape[-1] != module.in_features:
            raise InvalidInput(
                f"{label}: expects {module.in_features} inputs, shape {shape} reaches it"
            )
        return [Affine(_numbers(module.weight), _bias(module.bias, module.out_features))], (
            module.out_features,
        )
    if isinstance(module, nn.Conv2d):
        convolution = _read_convolution(module, label, shape)
        return [convolution], convolution.output_shape
    if isinstance(module, nn.AvgPool2d):
        pool = _read_pool(module, label, shape)
        return [pool], pool.output_shape
    if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
        return [_read_batch_norm(module, label, shape)], shape
    raise UnsupportedNetwork(f"{label} cannot be certified; supported are {SUPPORTED_MODULES}")


def _check_forward(module: nn.Module, label: str) -> None:
    """Refuse a module that computes more than its class, by a forward of its own or by hooks."""
    known = next((base for base in _KNOWN if isinstance(module, base)), None)
    if known is not None and type(module).forward is not known.forward:
        raise UnsupportedNetwork(
            f"{label}: replaces the forward method of {known.__name__}; supported are "
            f"{SUPPORTED_MODULES}"
        )
    if module._forward_hooks or module._forward_pre_hooks:
        raise UnsupportedNetwork(
            f"{label}: has forward hooks, which cannot be certified; expected a module without them"
        )


def _reshaped(
    module: nn.Flatten | nn.Unflatten, label: str, shape: tuple[int, ...]
) -> tuple[int, ...]:
    if isinstance(module, nn.Flatten):
        if module.start_dim != 1 or module.end_dim not in {-1, len(shape)}:
            raise UnsupportedNetwork(
                f"{label}: start_dim={module.start_dim}, end_dim={module.end_dim}; expected 1 "
                "and -1"
            )
        return (prod(shape),)
    sizes = [int(size) for size in module.unflattened_size]
    if -1 in sizes and -prod(sizes) > 0:
        sizes[sizes.index(-1)] = prod(shape) // -prod(sizes)
    if module.dim != 1 or len(shape) != 1 or prod(sizes) != prod(shape):
        raise InvalidInput(
            f"{label}: expected to split a flat axis 1 of {prod(sizes)}, shape {shape} reaches it"
        )
    return tuple(sizes)


def _check_activation(module: nn.Module, label: str) -> None:
    if isinstance(module, nn.GELU) and module.approximate != "none":
        raise UnsupportedNetwork(f"{label}: approximate={module.approximate!r}; expected 'none'")
    if isinstance(module, nn.Softplus) and (module.beta != 1 or module.threshold < 20):
        # From the threshold on torch returns its input. At 20 that is off by 2e-9, earlier it is
        # another function.
        raise UnsupportedNetwork(
            f"{label}: beta={module.beta}, threshold={module.threshold}; expected 1 and at least 20"
        )


def _read_convolution(module: nn.Conv2d, label: str, shape: tuple[int, ...]) -> Convolution:
    if len(shape) != 3:
        raise InvalidInput(f"{label}: expects (channels, height, width), shape {shape} reaches it")
    if (
        module.padding_mode != "zeros"
        or isinstance(module.padding, str)
        or any(d != 1 for d in module.dilation)
    ):
        raise UnsupportedNetwork(f"{label}: expected explicit zero padding and no dilation")
    return Convolution(
        _numbers(module.weight),
        _bias(module.bias, module.out_channels),
        input_shape=(shape[0], shape[1], shape[2]),
        stride=(module.stride[0], module.stride[1]),
        padding=(int(module.padding[0]), int(module.padding[1])),
        groups=module.groups,
    )


def _read_pool(module: nn.AvgPool2d, label: str, shape: tuple[int, ...]) -> Convolution:
    if len(shape) != 3:
        raise InvalidInput(f"{label}: expects (channels, height, width), shape {shape} reaches it")
    if _pair(module.padding) != (0, 0) or module.ceil_mode or module.divisor_override:
        raise UnsupportedNetwork(
            f"{label}: expected no padding, no ceil_mode and no divisor_override"
        )
    return average_pool(
        (shape[0], shape[1], shape[2]), _pair(module.kernel_size), _pair(module.stride)
    )


def _read_batch_norm(
    module: nn.BatchNorm1d | nn.BatchNorm2d, label: str, shape: tuple[int, ...]
) -> Linear:
    if module.training:
        raise UnsupportedNetwork(f"{label}: is in training mode; call eval() first")
    if module.running_mean is None or module.running_var is None:
        raise UnsupportedNetwork(
            f"{label}: keeps no running statistics; expected track_running_stats=True"
        )
    if len(shape) not in {1, 3} or shape[0] != module.num_features:
        raise InvalidInput(
            f"{label}: expects {module.num_features} features or channels, shape {shape} reaches it"
        )
    deviation = np.sqrt(_numbers(module.running_var) + module.eps)
    scale = (_numbers(module.weight) if module.affine else np.ones_like(deviation)) / deviation
    shift = (_numbers(module.bias) if module.affine else 0.0) - _numbers(
        module.running_mean
    ) * scale
    if len(shape) == 1:
        return Affine(np.diag(scale), np.asarray(shift))
    image = (shape[0], shape[1], shape[2])
    return Convolution(
        scale[:, None, None, None], np.asarray(shift), input_shape=image, groups=shape[0]
    )


def _pair(value: int | tuple[int, ...]) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (value[0], value[1])


def _numbers(parameter: torch.Tensor | nn.Parameter) -> Array:
    return np.asarray(parameter.detach().cpu().double().numpy(), dtype=np.float64)


def _bias(parameter: torch.Tensor | None, size: int) -> Array:
    return np.zeros(size) if parameter is None else _numbers(parameter)
