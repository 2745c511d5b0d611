"""One description of a certifiable network, as plain float64 arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from reticent.networks.torch_modules import (
        SUPPORTED_MODULES,
        ResidualSum,
        from_torch,
        to_torch,
    )
else:
    from reticent.core.lazy import lazy_names

    __getattr__ = lazy_names(__name__)

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
