"""One description of a certifiable network, as plain float64 arrays."""

from reticent.networks.from_torch import SUPPORTED_MODULES, ResidualSum, from_torch, to_torch
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
from reticent.networks.network import Network, affine_chain

__all__ = [
    "SUPPORTED_MODULES",
    "Activation",
    "ActivationKind",
    "Affine",
    "Convolution",
    "Layer",
    "Linear",
    "Network",
    "Residual",
    "ResidualSum",
    "affine_chain",
    "average_pool",
    "from_torch",
    "to_torch",
]
