"""An embedding from the JSON values and arrays of a bundle."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.core.arrays import Arrays, part_of
from reticent.core.checks import count, words
from reticent.core.errors import CorruptBundle
from reticent.core.extras import require
from reticent.release.bundle import rebuilding
from reticent.systems.embedding.embedding import BETA_VAE, MODULE, Embedding, IdentityEmbedding

if TYPE_CHECKING:
    from torch import nn

_NETWORKS = (BETA_VAE, MODULE)
_MOST_FEATURES = 2**24
"""Features of one input at most, of a module that only a run can tell about."""


def restore(described: dict[str, Any], arrays: Arrays, module: nn.Module | None) -> Embedding:
    """Return the embedding that ``describe`` took apart.

    Args:
        described: its JSON values.
        arrays: the bundle's arrays.
        module: a module like the user's stored one, which is copied and given the stored weights.
            Where the stored one could be read it must have the same structure. Of others only the
            class is compared, and whoever passes it answers for the rest.

    Raises:
        InvalidInput: the bundle needs the user's module, and none or another one was given.
        CorruptBundle: weights that do not fit.
        MissingExtra: the embedding is a network, and torch is not installed.
    """
    with rebuilding():
        kind, name = described["kind"], words(described["name"], name="name", minimum=0)
        if kind == IdentityEmbedding.kind:
            return IdentityEmbedding(count(described["dimension"], name="dimension"), name=name)
        if kind not in _NETWORKS:
            raise CorruptBundle(f"embedding: unknown kind {kind!r}")
    require("torch", extra="networks")
    from reticent.systems.embedding.modules import restored_beta_vae, restored_module

    state = part_of(arrays, "embedder.")
    if kind == BETA_VAE:
        return restored_beta_vae(described, state, name)
    return restored_module(described, state, name, module)


def check_sizes(embedding: Embedding, input_shape: tuple[int, ...], dimension: int) -> None:
    """Check that inputs of that shape become embeddings of that dimension.

    Raises:
        CorruptBundle: they do not.
    """
    inputs = prod(input_shape)
    sizes = embedding.sizes
    if sizes is None and 0 < inputs <= _MOST_FEATURES:
        with rebuilding():
            sizes = inputs, embedding.embed(np.zeros((1, inputs))).shape[1]
    if sizes != (inputs, dimension):
        raise CorruptBundle(
            f"bundle: its embedder does not take inputs of {inputs} features to {dimension}; "
            "fetch or fit it again"
        )
