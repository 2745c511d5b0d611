"""The interface of an embedding, its space and its way out of a bundle, and the embedding that
needs no network: the inputs themselves.

Two embedders of one shape and kind put the same two pictures at different distances. So a space is
its map and not its words: its identity is a digest of everything that maps an input to the point
whose distance is measured.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.core.arrays import Array, Arrays, part_of
from reticent.core.checks import count, words
from reticent.core.errors import CorruptBundle
from reticent.core.extras import require
from reticent.core.regions import Box
from reticent.core.rows import each_row, finite_or_zero
from reticent.release.bundle import rebuilding
from reticent.training.features import LARGEST_INPUT

if TYPE_CHECKING:
    from torch import nn

BETA_VAE, MODULE = "beta-VAE", "module"
"""Kinds of embeddings that are networks."""

_TAIL = 5e-4  # share of public embeddings that may lie outside the box on either side of each axis
_NETWORKS = (BETA_VAE, MODULE)
_MOST_FEATURES = 2**24
"""Features of one input at most, of a module that only a run can tell about."""

MAPS_VERSION = 1
"""Version of reticent's own part of the map (flattening, number format, clipping); raised
whenever that part changes.
"""


def arrays_digest(arrays: dict[str, npt.NDArray[Any]]) -> str:
    """Return the SHA-256 of arrays: names, types, shapes and bytes.

    Example:
        >>> arrays_digest({"a": np.zeros(2)}) == arrays_digest({"a": np.zeros((2, 1))})
        False
    """
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        plain = np.ascontiguousarray(array)
        plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False).reshape(array.shape)
        head = json.dumps([name, plain.dtype.str, list(plain.shape)]).encode()
        for part in (head, plain.tobytes()):
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
    return digest.hexdigest()


def space_identity(described: dict[str, Any], arrays: dict[str, npt.NDArray[Any]], box: Box) -> str:
    """Return the identity of the space of embeddings that are clipped to a box.

    Moving points to a grid afterwards belongs to a mechanism, which adds its step to the radius,
    and has no part in this: an embedding and a label of one embedder share a budget.

    Args:
        described: JSON values that say what the map is: kind, settings, input shape, structure,
            name or serial.
        arrays: its weights.
        box: the box that embeddings are clipped to.
    """
    head = {
        "maps": MAPS_VERSION,
        "embedding": described,
        "weights": arrays_digest(arrays),
        "box": arrays_digest({"lower": box.lower, "upper": box.upper}),
    }
    return hashlib.sha256(
        json.dumps(head, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    ).hexdigest()


class Embedding(ABC):
    """A fixed map from inputs (n, features) to embeddings (n, dimension), float64.

    Attributes:
        name: its owner's name for it, who vouches that everything of that name maps inputs
            alike, or "" for no name.
    """

    kind: ClassVar[str]
    name: str = ""

    lower: float = -LARGEST_INPUT
    upper: float = LARGEST_INPUT
    """The public range that every input value is clipped to before the map sees it."""

    @property
    def sizes(self) -> tuple[int, int] | None:
        """Return features of an input and of an embedding, None where only a run can tell."""
        return None

    def embed(self, inputs: Array) -> Array:
        """Return embeddings, shape (n, dimension), of checked inputs (n, features).

        The map is total, and row by row. Inputs are clipped to the public range. Each row is
        computed alone, so that no other row has a say in its last bits. A row whose embedding is
        not finite is mapped to the origin.
        """
        return finite_or_zero(self.alone(inputs))

    def alone(self, inputs: Array) -> Array:
        """Return the same as ``embed``, with NaN and infinity where the map gives them.

        It is for the owner's checks in ``fit``.
        """
        return each_row(self.compute, np.clip(inputs, self.lower, self.upper))

    @abstractmethod
    def compute(self, inputs: Array) -> Array:
        """Return what the map gives for a batch (n, features) as it is.

        It may be NaN, and may depend on the batch in its last bits.
        """

    @abstractmethod
    def describe(self) -> tuple[dict[str, Any], Arrays]:
        """Return plain JSON values and named arrays that ``restore`` reads."""

    @property
    @abstractmethod
    def space(self) -> str:
        """Describe the embedding in plain words."""

    def identity(self, box: Box) -> str:
        """Return the ``space_identity``: a digest of all that maps an input to an embedding clipped
        to ``box``.
        """
        return space_identity(*self.describe(), box)

    def pictures(self, embeddings: npt.ArrayLike) -> npt.NDArray[np.float32] | None:
        """Return decoded pictures of embeddings, or None if there is no decoder."""
        return None


class IdentityEmbedding(Embedding):
    """Inputs that are embeddings already."""

    kind: ClassVar[str] = "identity"

    def __init__(self, dimension: int, *, name: str = "") -> None:
        self.dimension = dimension
        self.name = name

    @property
    @override
    def sizes(self) -> tuple[int, int]:
        """Return the dimension, twice."""
        return self.dimension, self.dimension

    @override
    def embed(self, inputs: Array) -> Array:
        """Return the inputs themselves, which are finite. Whoever uses them clips them to a
        public box.
        """
        return inputs

    @override
    def alone(self, inputs: Array) -> Array:
        """Return the inputs themselves."""
        return inputs

    @override
    def compute(self, inputs: Array) -> Array:
        """Return the inputs themselves."""
        return inputs

    def describe(self) -> tuple[dict[str, Any], Arrays]:
        """Return the dimension."""
        return {"kind": self.kind, "name": self.name, "dimension": self.dimension}, {}

    @property
    def space(self) -> str:
        """Describe the input space in plain words."""
        return f"{self.dimension}-dimensional input space"


def domain_of(points: Array, *, margin: float) -> Box:
    """Return a box around nearly all public embeddings, so that few inputs are clipped.

    Args:
        points: shape (n, d), public.
        margin: additional width of the box on every side.
    """
    lower, upper = np.quantile(points, [_TAIL, 1.0 - _TAIL], axis=0)
    return Box(lower - margin, upper + margin)


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
