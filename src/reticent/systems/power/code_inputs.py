"""The inputs of a code: rows of a schema, or points of an embedding in a public box."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Arrays
from reticent.core.checks import count
from reticent.core.coded_rows import CodedRows
from reticent.core.errors import CorruptBundle
from reticent.core.guarantees import Neighborhood
from reticent.core.norms import Norm
from reticent.core.regions import Box
from reticent.release.bundle import rebuilding
from reticent.systems.embedding import Embedding, check_sizes, restore
from reticent.systems.power.query import SPACE
from reticent.tables.schema import TabularSchema

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, eq=False)
class SchemaRows:
    """Rows of a table, encoded by its public schema."""

    schema: TabularSchema

    @property
    def columns(self) -> int:
        """The columns of the table."""
        return self.schema.columns

    @property
    def corner(self) -> Array:
        """The upper end of every range."""
        return self.schema.domain.upper

    def encode(self, inputs: npt.NDArray[Any]) -> CodedRows:
        """Return checked rows. It raises what ``TabularSchema.code`` raises."""
        return self.schema.code(inputs)

    def clip(self, rows: Array) -> Array:
        """Return rows moved into the public box."""
        return self.schema.domain.clip(rows)

    def within(self, norm: Norm, radius: float) -> Neighborhood:
        """Return the adjacency of records that are near in the encoded space."""
        return Neighborhood(norm, radius, SPACE, self.schema.digest)

    def describe(self) -> tuple[dict[str, Any], Arrays]:
        """The schema."""
        return {"schema": self.schema.to_dict()}, {}


@dataclass(frozen=True, eq=False)
class EmbeddedPoints:
    """Embeddings of arrays, clipped to a public box.

    Attributes:
        embedding: map from inputs to points.
        box: the public box that points are clipped to.
        shape: shape of one input.
    """

    embedding: Embedding
    box: Box
    shape: tuple[int, ...]

    @property
    def columns(self) -> int:
        """The features of an input."""
        return int(np.prod(self.shape))

    @property
    def corner(self) -> Array:
        """The upper corner of the box."""
        return self.box.upper

    def encode(self, inputs: npt.NDArray[Any]) -> CodedRows:
        """Return points of checked inputs, shape (n, features)."""
        return CodedRows.of(self.box.clip(self.embedding.embed(inputs)))

    def clip(self, rows: Array) -> Array:
        """Return points moved into the box."""
        return self.box.clip(rows)

    def within(self, norm: Norm, radius: float) -> Neighborhood:
        """Return the adjacency of inputs whose embeddings are near."""
        identity = self.embedding.identity(self.box)
        return Neighborhood(norm, radius, self.embedding.space, identity)

    def describe(self) -> tuple[dict[str, Any], Arrays]:
        """The embedding, the box, and the shape of an input."""
        settings, arrays = self.embedding.describe()
        box = {"box.lower": self.box.lower, "box.upper": self.box.upper}
        return {"embedding": settings, "input_shape": list(self.shape)}, {**arrays, **box}


def restored_inputs(
    settings: Any, arrays: Arrays, module: nn.Module | None
) -> SchemaRows | EmbeddedPoints:
    """The inputs that ``describe`` took apart.

    Args:
        settings: plain JSON values.
        arrays: the bundle's.
        module: the user's own, where the bundle was fitted with one.

    Raises:
        InvalidInput: the bundle needs the user's module, and none or another one was given.
        CorruptBundle: parts that do not fit together.
    """
    with rebuilding():
        if "schema" in settings:
            return SchemaRows(TabularSchema.from_dict(settings["schema"]))
        shape = tuple(count(size, name="input_shape") for size in settings["input_shape"])
        box, described = Box(arrays["box.lower"], arrays["box.upper"]), settings["embedding"]
        if not shape:
            raise CorruptBundle("bundle: an input without a shape")
    embedding = restore(described, arrays, module)
    check_sizes(embedding, shape, box.dimension)
    return EmbeddedPoints(embedding, box, shape)
