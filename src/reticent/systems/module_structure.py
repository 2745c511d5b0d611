"""What a torch module computes, read from its types, settings and weights; nothing where that
is not all. What was read is enough to build the module again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.modules import module as torch_module

from reticent.core.arrays import Arrays
from reticent.core.errors import CorruptBundle
from reticent.networks import ResidualSum

_LEAVES: tuple[nn.Module, ...] = (
    nn.Identity(),
    nn.Flatten(),
    nn.Unflatten(1, (1, 1)),
    nn.Linear(1, 1),
    nn.Conv1d(1, 1, 1),
    nn.Conv2d(1, 1, 1),
    nn.Conv3d(1, 1, 1),
    nn.ConvTranspose1d(1, 1, 1),
    nn.ConvTranspose2d(1, 1, 1),
    nn.AvgPool1d(1),
    nn.AvgPool2d(1),
    nn.MaxPool1d(1),
    nn.MaxPool2d(1),
    nn.AdaptiveAvgPool1d(1),
    nn.AdaptiveAvgPool2d(1),
    nn.AdaptiveMaxPool2d(1),
    nn.BatchNorm1d(1),
    nn.BatchNorm2d(1),
    nn.GroupNorm(1, 1),
    nn.LayerNorm(1),
    nn.Dropout(),
    nn.Dropout1d(),
    nn.Dropout2d(),
    nn.ReLU(),
    nn.ReLU6(),
    nn.LeakyReLU(),
    nn.ELU(),
    nn.SELU(),
    nn.GELU(),
    nn.SiLU(),
    nn.Hardtanh(),
    nn.Tanh(),
    nn.Sigmoid(),
    nn.Softplus(),
    nn.Softmax(1),
)
"""One instance of each leaf type that can be read: what its constructor sets is what such a
module may hold.
"""

_BRANCHES: tuple[nn.Module, ...] = (nn.Sequential(), ResidualSum(nn.Identity()))

_SAMPLES = {type(sample).__name__: sample for sample in (*_LEAVES, *_BRANCHES)}
_ATTRIBUTES = {type(sample): frozenset(vars(sample)) for sample in _SAMPLES.values()}
_LEAF_TYPES = frozenset(type(sample) for sample in _LEAVES)
_OF_EVERY_MODULE = frozenset(vars(nn.Module()))
_EXACT_TENSORS = (torch.Tensor, nn.Parameter)

READABLE = tuple(sorted(kind.__name__ for kind in _ATTRIBUTES))
"""Names of the types whose modules have a digest."""


class _Unreadable(Exception):
    """A module computes with something that is not among its weights and settings."""


def module_structure(module: nn.Module, *, weights: bool = True) -> list[Any] | None:
    """Types and settings of a module and all its parts as JSON values, or None where that is not
    all that it computes with.

    It is all only if every part is *exactly* of a type in ``READABLE`` (a subclass may compute
    something else), in evaluation mode, without hooks of its own or for all modules, without
    parametrizations, and without attributes that its constructor does not set (such as a
    ``forward`` of its own): two modules with a Python attribute ``scale`` have equal weights and
    other outputs. Weights are no part of the structure, but have to be plain tensors on the
    processor.

    Args:
        module: in evaluation mode.
        weights: whether its weights are looked at; not those of a module that was built without
            any.

    Example:
        >>> module_structure(nn.Sequential(nn.Flatten()).eval())
        ['Sequential', {}, {'0': ['Flatten', {'end_dim': -1, 'start_dim': 1}, {}]}]
        >>> class Doubled(nn.Linear): ...
        >>> module_structure(Doubled(2, 2).eval()) is None
        True
    """
    if any(
        hooks
        for name, hooks in vars(torch_module).items()
        if name.startswith("_global_") and name.endswith("_hooks")
    ):
        return None
    try:
        structure = _read(module)
        if weights:
            _check_weights(module)
    except _Unreadable:
        return None
    return structure


def module_from(structure: Any, weights: Arrays) -> nn.Module:
    """Build the module that ``module_structure`` read, in evaluation mode, without running any code
    but that of the types in ``READABLE``.

    Args:
        structure: plain JSON values.
        weights: the state dict of the module, by name; the new module holds copies.

    Raises:
        CorruptBundle: an unknown type, a setting that its type does not have here, or weights that
            are missing or left over.

    Example:
        >>> plain = nn.Sequential(nn.Linear(2, 1, bias=False)).eval()
        >>> weights = {name: value.numpy() for name, value in plain.state_dict().items()}
        >>> module_from(module_structure(plain), weights)
        Sequential(
          (0): Linear(in_features=2, out_features=1, bias=False)
        )
    """
    left = dict(weights)
    module = _built(structure, "", left)
    if left or module_structure(module) != structure:
        raise CorruptBundle("embedding: its layers, settings and weights do not fit together")
    return module


def _built(structure: Any, path: str, left: Arrays) -> nn.Module:
    """One module and all below it; takes its weights out of ``left``."""
    name, settings, parts = structure
    sample = _SAMPLES.get(name)
    if sample is None or settings.keys() != vars(sample).keys() - _OF_EVERY_MODULE:
        raise CorruptBundle(f"embedding: no layer {name!r} with these settings is known here")
    module = type(sample).__new__(type(sample))
    nn.Module.__init__(module)
    for setting, value in settings.items():
        object.__setattr__(module, setting, _value(value))

    def taken(held: str) -> torch.Tensor | None:
        found = left.pop(path + held, None)
        return None if found is None else torch.from_numpy(np.array(found))

    for held in sample._parameters:
        tensor = taken(held)
        module.register_parameter(held, None if tensor is None else nn.Parameter(tensor))
    for held in sample._buffers:
        module.register_buffer(held, taken(held))
    for place, part in parts.items():
        module.add_module(place, _built(part, f"{path}{place}.", left))
    return module.eval()


def _value(stored: Any) -> Any:
    """The setting that ``_setting`` wrote down."""
    if isinstance(stored, dict):
        return float.fromhex(stored["float"])
    return tuple(map(_value, stored)) if isinstance(stored, list) else stored


def _read(module: nn.Module) -> list[Any]:
    attributes = _ATTRIBUTES.get(type(module))
    own = vars(module)
    if attributes is None or frozenset(own) != attributes or module.training:
        raise _Unreadable
    if any(own[name] for name in _OF_EVERY_MODULE if "hooks" in name):
        raise _Unreadable
    parts = {name: part for name, part in own["_modules"].items() if part is not None}
    if len(parts) < len(own["_modules"]) or (parts and type(module) in _LEAF_TYPES):
        raise _Unreadable
    settings = {name: _setting(own[name]) for name in sorted(attributes - _OF_EVERY_MODULE)}
    return [type(module).__name__, settings, {name: _read(part) for name, part in parts.items()}]


def _setting(value: Any) -> Any:
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return {"float": value.hex()}  # JSON has no infinity, and 1 and 1.0 are the same to it
    if type(value) in (tuple, list, torch.Size):
        return [_setting(entry) for entry in value]
    raise _Unreadable


def _check_weights(module: nn.Module) -> None:
    """Refuses weights that a state dict would not hold as they are: buffers outside it, special
    tensors.
    """
    held = module.state_dict(keep_vars=True)
    for name, tensor in (
        *module.named_parameters(remove_duplicate=False),
        *module.named_buffers(remove_duplicate=False),
    ):
        plain = (
            type(tensor) in _EXACT_TENSORS
            and tensor.layout is torch.strided
            and tensor.device.type == "cpu"
        )
        if (
            not plain
            or tensor.is_conj()
            or tensor.is_neg()
            or tensor.is_quantized
            or tensor.dtype is torch.bfloat16
        ):
            raise _Unreadable
        if held.get(name) is not tensor:
            raise _Unreadable
