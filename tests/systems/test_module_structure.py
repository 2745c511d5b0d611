"""A module has a structure only where types, settings and weights are all that it computes with."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, prune

from reticent.core.errors import CorruptBundle
from reticent.networks import ResidualSum
from reticent.systems.module_structure import module_from, module_structure


class Own(nn.Module):
    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return 20.0 * inputs


class Wider(nn.Linear):
    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return 20.0 * super().forward(inputs)


def plain() -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(2, 3), nn.BatchNorm1d(3), nn.ReLU(), ResidualSum(nn.Linear(3, 3)), nn.Linear(3, 2)
    ).eval()


def with_attribute(module: nn.Sequential) -> None:
    module[2].scale = 20.0  # type: ignore[assignment]


def with_own_forward(module: nn.Sequential) -> None:
    module[2].forward = lambda inputs: 20.0 * inputs  # type: ignore[method-assign]


def in_training_mode(module: nn.Sequential) -> None:
    module[1].train()


def with_hidden_buffer(module: nn.Sequential) -> None:
    module[0].register_buffer("shift", torch.ones(3), persistent=False)


def compiled(module: nn.Sequential) -> None:
    module[0]._compiled_call_impl = lambda inputs: inputs  # type: ignore[assignment]


HIDDEN: dict[str, Callable[[nn.Sequential], Any]] = {
    "attribute": with_attribute,
    "forward of the instance": with_own_forward,
    "training mode": in_training_mode,
    "buffer outside the state": with_hidden_buffer,
    "compiled": compiled,
    "forward hook": lambda module: module[0].register_forward_hook(lambda *_: None),
    "forward hook of the whole": lambda module: module.register_forward_hook(lambda *_: None),
    "forward hook with keywords": lambda module: module[0].register_forward_hook(
        lambda *_: None, with_kwargs=True
    ),
    "forward pre-hook": lambda module: module[0].register_forward_pre_hook(lambda *_: None),
    "backward hook": lambda module: module[0].register_full_backward_hook(lambda *_: None),
    "backward pre-hook": lambda module: module[0].register_full_backward_pre_hook(lambda *_: None),
    "state hook": lambda module: module[0].register_state_dict_post_hook(lambda *_: None),
    "load hook": lambda module: module[0].register_load_state_dict_pre_hook(lambda *_: None),
    "parametrization": lambda module: parametrizations.weight_norm(module[0]),
    "pruning": lambda module: prune.l1_unstructured(module[0], "weight", 1),
    "subclass": lambda module: module.__setitem__(0, Wider(2, 3).eval()),
    "own class": lambda module: module.append(Own().eval()),
    "child of a leaf": lambda module: module[2].add_module("more", nn.ReLU()),
    "an empty place": lambda module: module._modules.__setitem__("3", None),
    "a setting of another kind": lambda module: setattr(module[1], "eps", np.float64(1e-5)),
    "weights of another kind": lambda module: setattr(
        module[0], "weight", nn.Parameter(torch.eye(3, 2).to_sparse())
    ),
    "brain floats": lambda module: module[0].bfloat16(),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("hide", HIDDEN.values(), ids=HIDDEN.keys())
def test_a_module_that_hides_something_has_no_digest(hide: Callable[[nn.Sequential], Any]) -> None:
    module = plain()
    assert module_structure(module) is not None
    hide(module)
    assert module_structure(module) is None


def test_hooks_for_all_modules_are_seen() -> None:
    handle = nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        assert module_structure(plain()) is None
    finally:
        handle.remove()
    assert module_structure(plain()) is not None


def test_a_module_is_built_again_from_what_was_read_of_it() -> None:
    convolutions = nn.Sequential(
        nn.Unflatten(1, (1, 8)),
        ResidualSum(nn.Conv2d(1, 1, 3, padding=1, padding_mode="reflect")),
        nn.BatchNorm2d(1, track_running_stats=False, affine=False),
        nn.MaxPool2d(2, ceil_mode=True),
        nn.Flatten(),
        nn.LayerNorm(16),
        nn.Linear(16, 2, bias=False),
        nn.Hardtanh(-1.0, float("inf")),
    ).eval()
    inputs = torch.randn(5, 8, 8)
    for module, given in ((plain(), inputs[:, 0, :2]), (convolutions, inputs)):
        structure, state = module_structure(module), module.state_dict()
        weights = {name: tensor.numpy() for name, tensor in state.items()}
        # As the settings come out of a file.
        built = module_from(json.loads(json.dumps(structure)), weights)
        assert torch.equal(built(given), module(given))
        assert module_structure(built) == structure
        with pytest.raises(CorruptBundle):
            module_from(structure, {**weights, "more": np.zeros(1)})
    with pytest.raises(CorruptBundle):
        module_from(["Embedding", {}, {}], {})


SETTINGS = [
    (nn.Conv2d(2, 2, 3), nn.Conv2d(2, 2, 3, stride=2)),
    (nn.Conv2d(2, 2, 3), nn.Conv2d(2, 2, 3, padding=1)),
    (nn.Conv2d(2, 2, 3, padding=1), nn.Conv2d(2, 2, 3, padding=1, padding_mode="reflect")),
    (nn.BatchNorm1d(3), nn.BatchNorm1d(3, eps=1e-3)),
    (nn.LeakyReLU(0.01), nn.LeakyReLU(0.02)),
    (nn.GELU(), nn.GELU(approximate="tanh")),
    (nn.Hardtanh(-1.0, 1.0), nn.Hardtanh(-1.0, float("inf"))),
    (nn.AvgPool2d(2), nn.AvgPool2d(2, count_include_pad=False)),
    (nn.Flatten(), nn.Flatten(2)),
    (nn.ReLU(), nn.SiLU()),
]


@pytest.mark.parametrize(("first", "second"), SETTINGS, ids=lambda module: type(module).__name__)
def test_settings_have_a_part_in_the_structure(first: nn.Module, second: nn.Module) -> None:
    structures = [module_structure(nn.Sequential(module).eval()) for module in (first, second)]
    assert None not in structures
    assert structures[0] != structures[1]
