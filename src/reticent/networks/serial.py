"""A network as the plain JSON values and named arrays that a bundle stores, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.errors import InvalidInput
from reticent.networks.layers import (
    Activation,
    ActivationKind,
    Affine,
    Convolution,
    Layer,
    Linear,
    Residual,
)
from reticent.networks.network import Network

Arrays = dict[str, npt.NDArray[np.float64]]


def describe(network: Network, prefix: str) -> tuple[dict[str, Any], Arrays]:
    """Return the structure as JSON values, and the weights as arrays whose names start with
    ``prefix``.

    Example:
        >>> from reticent.networks import affine_chain
        >>> structure, arrays = describe(affine_chain([[[2.0]]], [[1.0]]), "f")
        >>> sorted(arrays)
        ['f.0.bias', 'f.0.weight']
    """
    arrays: Arrays = {}
    layers = _describe_layers(network.layers, prefix, arrays)
    return {"input_shape": list(network.input_shape), "layers": layers}, arrays


def same_network(first: Network, second: Network) -> bool:
    """Return whether two networks have the same layers and weights, to the last bit.

    Example:
        >>> from reticent.networks import affine_chain
        >>> line = affine_chain([[[1.0]]], [[0.0]])
        >>> same_network(line, line), same_network(line, affine_chain([[[2.0]]], [[0.0]]))
        (True, False)
    """
    structure, arrays = describe(first, "network")
    other, others = describe(second, "network")
    return structure == other and all(
        np.array_equal(array, others[name]) for name, array in arrays.items()
    )


def rebuild(structure: dict[str, Any], arrays: Arrays, prefix: str) -> Network:
    """Return the network that ``describe`` took apart.

    Raises:
        InvalidInput: a field or an array is missing or of the wrong shape.
    """
    try:
        return Network(
            _rebuild_layers(structure["layers"], arrays, prefix), tuple(structure["input_shape"])
        )
    except (KeyError, TypeError, IndexError) as error:
        raise InvalidInput(f"network: not a description written by describe ({error})") from error


def _describe_layers(
    layers: tuple[Layer, ...], prefix: str, arrays: Arrays
) -> list[dict[str, Any]]:
    described: list[dict[str, Any]] = []
    for index, layer in enumerate(layers):
        name = f"{prefix}.{index}"
        if isinstance(layer, Activation):
            described.append({"type": "activation", "kind": layer.kind.value})
        elif isinstance(layer, Residual):
            described.append(
                {"type": "residual", "branch": _describe_layers(layer.branch, name, arrays)}
            )
        else:
            described.append(_describe_linear(layer))
            arrays[f"{name}.weight"], arrays[f"{name}.bias"] = layer.weight, layer.bias
    return described


def _describe_linear(layer: Linear) -> dict[str, Any]:
    if not isinstance(layer, Convolution):
        return {"type": "affine"}
    return {
        "type": "convolution",
        "input_shape": list(layer.input_shape),
        "stride": list(layer.stride),
        "padding": list(layer.padding),
        "groups": layer.groups,
    }


def _rebuild_layers(
    described: list[dict[str, Any]], arrays: Arrays, prefix: str
) -> tuple[Layer, ...]:
    layers: list[Layer] = []
    for index, fields in enumerate(described):
        name = f"{prefix}.{index}"
        if fields["type"] == "activation":
            layers.append(Activation(ActivationKind(fields["kind"])))
        elif fields["type"] == "residual":
            layers.append(Residual(_rebuild_layers(fields["branch"], arrays, name)))
        elif fields["type"] == "affine":
            layers.append(Affine(arrays[f"{name}.weight"], arrays[f"{name}.bias"]))
        elif fields["type"] == "convolution":
            layers.append(
                Convolution(
                    arrays[f"{name}.weight"],
                    arrays[f"{name}.bias"],
                    input_shape=(
                        fields["input_shape"][0],
                        fields["input_shape"][1],
                        fields["input_shape"][2],
                    ),
                    stride=(fields["stride"][0], fields["stride"][1]),
                    padding=(fields["padding"][0], fields["padding"][1]),
                    groups=fields["groups"],
                )
            )
        else:
            raise InvalidInput(f"network: unknown layer type {fields['type']!r}")
    return tuple(layers)
