from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

from reticent.core.errors import InvalidInput, UnsupportedNetwork
from reticent.networks import ResidualSum, from_torch, to_torch


def _batch_norm(layer):
    with torch.no_grad():
        layer.running_mean.normal_()
        layer.running_var.uniform_(0.1, 3.0)
        if layer.affine:
            layer.weight.normal_()
            layer.bias.normal_()
    return layer


SUPPORTED = {
    "linear": (lambda: nn.Sequential(nn.Linear(5, 4)), (5,)),
    "a bare layer": (lambda: nn.Linear(5, 4, bias=False), (5,)),
    "relu": (lambda: nn.Sequential(nn.Linear(5, 4), nn.ReLU(inplace=True), nn.Linear(4, 3)), (5,)),
    "tanh, dropout, identity": (
        lambda: nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Dropout(0.5), nn.Identity()),
        (5,),
    ),
    "sigmoid, nested": (
        lambda: nn.Sequential(nn.Sequential(nn.Linear(5, 4)), nn.Sequential(nn.Sigmoid())),
        (5,),
    ),
    "gelu first": (lambda: nn.Sequential(nn.GELU(), nn.Linear(5, 4)), (5,)),
    "softplus": (lambda: nn.Sequential(nn.Linear(5, 4), nn.Softplus()), (5,)),
    "batch norm": (
        lambda: nn.Sequential(nn.Linear(5, 4), _batch_norm(nn.BatchNorm1d(4)), nn.ReLU()),
        (5,),
    ),
    "batch norm without weights": (
        lambda: nn.Sequential(nn.Linear(5, 4), _batch_norm(nn.BatchNorm1d(4, affine=False))),
        (5,),
    ),
    "images": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 4, 3, stride=2, padding=1, groups=2),
            _batch_norm(nn.BatchNorm2d(4)),
            nn.ReLU(),
            nn.AvgPool2d(2, stride=(1, 2)),
            nn.Dropout2d(),
            nn.Flatten(),
            nn.LazyLinear(3),
        ),
        (2, 7, 8),
    ),
    "unflatten": (
        lambda: nn.Sequential(
            nn.Linear(5, 8), nn.Unflatten(1, (2, -1, 2)), nn.Conv2d(2, 3, (1, 2)), nn.Flatten()
        ),
        (5,),
    ),
    "residual": (
        lambda: nn.Sequential(
            nn.Linear(5, 4), ResidualSum(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
        ),
        (5,),
    ),
    "residual image": (
        lambda: nn.Sequential(
            ResidualSum(nn.Conv2d(2, 2, 3, padding=1)), nn.Flatten(), nn.Linear(24, 2)
        ),
        (2, 3, 4),
    ),
    "weight norm": (
        lambda: nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(5, 4))),
        (5,),
    ),
    "half precision": (lambda: nn.Sequential(nn.Linear(5, 4)).half(), (5,)),
}


@pytest.mark.parametrize("name", SUPPORTED)
def test_computes_what_torch_computes(name):
    torch.manual_seed(0)
    build, shape = SUPPORTED[name]
    module = build()
    inputs = torch.randn(9, *shape, dtype=torch.float64)
    if name == "images":  # lets the lazy layer find its width
        module.eval()(inputs.float())
    module.eval()
    network = from_torch(module, shape)
    expected = copy.deepcopy(module).double()(inputs).detach().numpy().reshape(9, -1)
    # Weight norm multiplies in float32 here and in float64 there; softplus of torch is linear from
    # 20 on.
    tolerance = 1e-6 if name == "weight norm" else 1e-8
    assert network.forward(inputs.numpy()) == pytest.approx(expected, abs=tolerance)
    assert to_torch(network)(inputs).detach().numpy() == pytest.approx(expected, abs=tolerance)


def test_weights_are_copied():
    module = nn.Linear(2, 2)
    network = from_torch(module, (2,))
    before = network.forward([[1.0, 2.0]])
    with torch.no_grad():
        module.weight.zero_()
    assert np.array_equal(network.forward([[1.0, 2.0]]), before)


class OwnForward(nn.Sequential):
    def forward(self, inputs):
        return 2 * super().forward(inputs)


class OwnLinear(nn.Linear):
    def forward(self, inputs):
        return 2 * super().forward(inputs)


class Plain(nn.Module):
    def forward(self, inputs):
        return inputs


def _hooked():
    module = nn.Linear(2, 2)
    module.register_forward_hook(lambda *_: None)
    return module


@pytest.mark.parametrize(
    ("build", "shape", "error", "message"),
    [
        (
            lambda: nn.Sequential(nn.Linear(2, 2), nn.LeakyReLU()),
            (2,),
            UnsupportedNetwork,
            "1 (LeakyReLU) cannot be certified; supp",
        ),
        (
            lambda: nn.Sequential(nn.Sequential(nn.ELU())),
            (2,),
            UnsupportedNetwork,
            "0.0 (ELU) cannot be certified; supported are Lin",
        ),
        (
            lambda: nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2)),
            (2,),
            UnsupportedNetwork,
            "1 (LayerNorm) cannot be certified",
        ),
        (
            lambda: nn.MaxPool2d(2),
            (1, 4, 4),
            UnsupportedNetwork,
            "module (MaxPool2d) cannot be certified",
        ),
        (
            lambda: nn.ConvTranspose2d(1, 1, 2),
            (1, 4, 4),
            UnsupportedNetwork,
            "module (ConvTranspose2d) cannot be certified",
        ),
        (Plain, (2,), UnsupportedNetwork, "module (Plain) cannot be certified"),
        (
            lambda: OwnForward(nn.Linear(2, 2)),
            (2,),
            UnsupportedNetwork,
            "module (OwnForward): replaces the forward method of Sequential",
        ),
        (
            lambda: OwnLinear(2, 2),
            (2,),
            UnsupportedNetwork,
            "module (OwnLinear): replaces the forward method of Linear",
        ),
        (_hooked, (2,), UnsupportedNetwork, "module (Linear): has forward hooks"),
        (
            lambda: nn.GELU(approximate="tanh"),
            (2,),
            UnsupportedNetwork,
            "module (GELU): approximate='tanh'; expected 'none'",
        ),
        (lambda: nn.Softplus(beta=2), (2,), UnsupportedNetwork, "module (Softplus): beta=2"),
        (
            lambda: nn.Softplus(threshold=1),
            (2,),
            UnsupportedNetwork,
            "module (Softplus): beta=1.0, threshold=1",
        ),
        (
            lambda: nn.Conv2d(1, 1, 2, dilation=2),
            (1, 4, 4),
            UnsupportedNetwork,
            "module (Conv2d): expected explicit zero padding",
        ),
        (
            lambda: nn.Conv2d(1, 1, 2, padding="same"),
            (1, 4, 4),
            UnsupportedNetwork,
            "module (Conv2d): expected explicit",
        ),
        (
            lambda: nn.Conv2d(1, 1, 2, padding=1, padding_mode="reflect"),
            (1, 4, 4),
            UnsupportedNetwork,
            "module (Conv2d): expected",
        ),
        (
            lambda: nn.Conv2d(1, 1, 2),
            (16,),
            InvalidInput,
            "module (Conv2d): expects (channels, height, width), shape (16,)",
        ),
        (
            lambda: nn.Conv2d(2, 1, 2),
            (1, 4, 4),
            InvalidInput,
            "convolution: expected 2 input channels, got 1",
        ),
        (
            lambda: nn.AvgPool2d(2, padding=1),
            (1, 4, 4),
            UnsupportedNetwork,
            "module (AvgPool2d): expected no padding",
        ),
        (
            lambda: nn.AvgPool2d(2, ceil_mode=True),
            (1, 5, 5),
            UnsupportedNetwork,
            "module (AvgPool2d): expected no padding",
        ),
        (
            lambda: nn.AvgPool2d(2),
            (4,),
            InvalidInput,
            "module (AvgPool2d): expects (channels, height, width)",
        ),
        (
            lambda: nn.BatchNorm1d(3).train(),
            (3,),
            UnsupportedNetwork,
            "module (BatchNorm1d): is in training mode; call eval() first",
        ),
        (
            lambda: nn.BatchNorm1d(3, track_running_stats=False).eval(),
            (3,),
            UnsupportedNetwork,
            "module (BatchNorm1d): keeps no",
        ),
        (
            lambda: nn.BatchNorm2d(3).eval(),
            (2, 4, 4),
            InvalidInput,
            "module (BatchNorm2d): expects 3 features or channels",
        ),
        (
            lambda: nn.Linear(3, 1),
            (2,),
            InvalidInput,
            "module (Linear): expects 3 inputs, shape (2,) reaches it",
        ),
        (
            lambda: nn.Linear(8, 1),
            (8, 1, 1),
            InvalidInput,
            "module (Linear): expects 8 inputs, shape (8, 1, 1)",
        ),
        (
            lambda: nn.Flatten(2),
            (2, 3, 4),
            UnsupportedNetwork,
            "module (Flatten): start_dim=2, end_dim=-1; expected 1 and -1",
        ),
        (
            lambda: nn.Unflatten(1, (2, 3)),
            (7,),
            InvalidInput,
            "module (Unflatten): expected to split a flat axis 1 of 6",
        ),
        (
            lambda: ResidualSum(nn.Linear(2, 3)),
            (2,),
            UnsupportedNetwork,
            "module (ResidualSum): the branch turns shape (2,) into (3,)",
        ),
        (nn.Sequential, (2,), UnsupportedNetwork, "network: expected at least one linear layer"),
        (nn.ReLU, (2,), UnsupportedNetwork, "network: expected at least one linear layer"),
        (
            lambda: torch.zeros(2),
            (2,),
            InvalidInput,
            "module: expected a torch.nn.Module, got Tensor",
        ),
        (
            lambda: nn.Linear(2, 2),
            (),
            InvalidInput,
            "input_shape=(): expected (d,) or (channels, height, width)",
        ),
        (lambda: nn.Linear(2, 2), (0,), InvalidInput, "input_shape=(0,): expected"),
        (lambda: nn.Linear(2, 2), (1, 2), InvalidInput, "input_shape=(1, 2): expected"),
    ],
)
def test_refused_with_a_message(build, shape, error, message):
    with pytest.raises(error) as caught:
        from_torch(build(), shape)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite(value):
    module = nn.Linear(2, 2)
    with torch.no_grad():
        module.weight[0, 0] = value
    with pytest.raises(InvalidInput, match="affine weight: contains"):
        from_torch(module, (2,))
