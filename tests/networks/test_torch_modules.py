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


PICTURE = (1, 4, 4)
UNSUPPORTED = [
    (nn.Sequential(nn.Linear(2, 2), nn.LeakyReLU()), (2,), "1 .LeakyReLU"),
    (nn.Sequential(nn.Sequential(nn.ELU())), (2,), "0.0 .ELU"),
    (nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2)), (2,), "1 .LayerNorm"),
    (nn.MaxPool2d(2), PICTURE, "MaxPool2d"),
    (nn.ConvTranspose2d(1, 1, 2), PICTURE, "ConvTranspose2d"),
    (Plain(), (2,), "Plain"),
    (OwnForward(nn.Linear(2, 2)), (2,), "forward method of Sequential"),
    (OwnLinear(2, 2), (2,), "forward method of Linear"),
    (_hooked(), (2,), "hooks"),
    (nn.GELU(approximate="tanh"), (2,), "approximate='tanh'"),
    (nn.Softplus(beta=2), (2,), "beta=2"),
    (nn.Softplus(threshold=1), (2,), "threshold=1"),
    (nn.Conv2d(1, 1, 2, dilation=2), PICTURE, "Conv2d"),
    (nn.Conv2d(1, 1, 2, padding="same"), PICTURE, "padding"),
    (nn.Conv2d(1, 1, 2, padding=1, padding_mode="reflect"), PICTURE, "padding"),
    (nn.AvgPool2d(2, padding=1), PICTURE, "padding"),
    (nn.AvgPool2d(2, ceil_mode=True), (1, 5, 5), "AvgPool2d"),
    (nn.BatchNorm1d(3).train(), (3,), "training mode"),
    (nn.BatchNorm1d(3, track_running_stats=False).eval(), (3,), "BatchNorm1d"),
    (nn.Flatten(2), (2, 3, 4), "start_dim=2"),
    (ResidualSum(nn.Linear(2, 3)), (2,), "ResidualSum"),
    (nn.Sequential(), (2,), "linear layer"),
    (nn.ReLU(), (2,), "linear layer"),
]
MISFITS = [
    (nn.Conv2d(1, 1, 2), (16,), "Conv2d"),
    (nn.Conv2d(2, 1, 2), PICTURE, "2 input channels"),
    (nn.AvgPool2d(2), (4,), "AvgPool2d"),
    (nn.BatchNorm2d(3).eval(), (2, 4, 4), "BatchNorm2d"),
    (nn.Linear(3, 1), (2,), "Linear"),
    (nn.Linear(8, 1), (8, 1, 1), "Linear"),
    (nn.Unflatten(1, (2, 3)), (7,), "Unflatten"),
    (torch.zeros(2), (2,), "Tensor"),
    (nn.Linear(2, 2), (), "input_shape"),
    (nn.Linear(2, 2), (0,), "input_shape"),
    (nn.Linear(2, 2), (1, 2), "input_shape"),
]


@pytest.mark.parametrize(
    ("module", "shape", "named", "error"),
    [(*case, UnsupportedNetwork) for case in UNSUPPORTED]
    + [(*case, InvalidInput) for case in MISFITS],
)
def test_what_cannot_be_certified_or_does_not_fit_is_refused_by_its_name(
    module, shape, named, error
):
    with pytest.raises(error, match=named):
        from_torch(module, shape)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite(value):
    module = nn.Linear(2, 2)
    with torch.no_grad():
        module.weight[0, 0] = value
    with pytest.raises(InvalidInput, match="affine weight: contains"):
        from_torch(module, (2,))
