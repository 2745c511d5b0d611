from __future__ import annotations

import json

import numpy as np
import pytest

from reticent.core.errors import InvalidInput
from reticent.networks import Activation, ActivationKind, Affine, Convolution, Network, Residual
from reticent.networks.serial import describe, rebuild


def test_every_layer_survives():
    rng = np.random.default_rng(0)
    convolution = Convolution(
        rng.normal(size=(2, 1, 2, 2)),
        rng.normal(size=2),
        input_shape=(2, 4, 3),
        stride=(2, 1),
        padding=(1, 0),
        groups=2,
    )
    size = convolution.outputs
    branch = (
        Affine(rng.normal(size=(size, size)), rng.normal(size=size)),
        Activation(ActivationKind.GELU),
    )
    network = Network(
        (convolution, Residual(branch), Affine(rng.normal(size=(2, size)), np.zeros(2))), (2, 4, 3)
    )
    structure, arrays = describe(network, "f")
    again = rebuild(json.loads(json.dumps(structure)), arrays, "f")
    points = rng.normal(size=(5, 24))
    assert np.array_equal(again.forward(points), network.forward(points))
    for missing in arrays:
        with pytest.raises(InvalidInput, match="network: not a description"):
            rebuild(
                structure, {name: array for name, array in arrays.items() if name != missing}, "f"
            )
    with pytest.raises(InvalidInput, match="network: not a description"):
        rebuild({}, arrays, "f")
