"""The embedding that a fitted part makes."""

from __future__ import annotations

import copy

from sklearn.base import BaseEstimator

from reticent.core.arrays import Array
from reticent.systems.embedding.embedding import Embedding, IdentityEmbedding
from reticent.systems.embedding.modules import BetaVaeEmbedding, ModuleEmbedding
from reticent.training.embedder import Embedder
from reticent.training.features import LARGEST_INPUT
from reticent.training.parts.contract import module_of
from reticent.training.parts.embedders import Identity


def embedding_of(
    part: BaseEstimator, inputs: Array, shape: tuple[int, ...], *, name: str
) -> Embedding:
    """Return the embedding that a fitted part makes.

    Args:
        part: the fitted part.
        inputs: shape (n, features), public. Values beyond their range and its width are clipped.
        shape: shape of one input.
        name: its owner's name for it, or "".
    """
    if type(part) is Identity:
        return IdentityEmbedding(inputs.shape[1], name=name)
    module = module_of(part, parameter="embedder")
    if isinstance(module, Embedder) and BetaVaeEmbedding.describes(module):
        return BetaVaeEmbedding(copy.deepcopy(module), name=name)
    lower, upper = _input_range(inputs)
    return ModuleEmbedding(
        module, shape if len(shape) > 1 else None, lower=lower, upper=upper, name=name
    )


def _input_range(inputs: Array) -> tuple[float, float]:
    """Return the range of the training inputs, which are public, and its width more on either side.

    So few inputs are ever clipped.
    """
    lower, upper = float(inputs.min()), float(inputs.max())
    width = min(upper - lower, LARGEST_INPUT) or 1.0
    return lower - width, upper + width
