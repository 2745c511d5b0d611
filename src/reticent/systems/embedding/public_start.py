"""Features of a public start, and the log probabilities of its models beside them."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from reticent.core.arrays import Array, Arrays, part_of, under
from reticent.core.errors import CorruptBundle
from reticent.release.bundle import rebuilding
from reticent.systems.embedding.embedding import Embedding
from reticent.systems.public_reference import PublicReference
from reticent.training.features import LARGEST_INPUT
from reticent.training.public_space import UNIT
from reticent.training.public_start import OFFSET_STEPS, PublicStart

_FIELDS = ("rows", "components", "whitening", "weight")
_PREFIX = "reference."


class PublicStartEmbedding(Embedding):
    """Points of a public start, and after them a column for each label.

    The public rows of the points have a root mean square length of 1. A column is weight times the
    log probability by public models.

    Args:
        start: a start that was fitted on public rows.
        reference: the settings that it was made by.
    """

    kind: ClassVar[str] = "public start"

    def __init__(self, start: PublicStart, reference: PublicReference) -> None:
        self.start = start
        self.reference = reference

    @property
    @override
    def sizes(self) -> tuple[int, int]:
        """Return columns of a row and coordinates of a point, without those of labels."""
        return self.start.features, self.start.space.dimension

    @override
    def alone(self, inputs: Array) -> Array:
        """Return the same as ``embed``: finite, and each row's from that row alone."""
        return self.compute(inputs)

    @override
    def compute(self, inputs: Array) -> Array:
        """Return points and weighted log probabilities, shape (n, dimension + labels)."""
        found = self.start.points(np.clip(inputs, -LARGEST_INPUT, LARGEST_INPUT))
        size = self.start.space.dimension
        return np.hstack(
            [found[:, :size] / UNIT, found[:, size:] * (self.reference.weight / OFFSET_STEPS)]
        )

    @override
    def describe(self) -> tuple[dict[str, Any], Arrays]:
        """Return the settings of the reference, and the start under ``reference.``."""
        settings = {name: getattr(self.reference, name) for name in _FIELDS}
        arrays = under(_PREFIX, self.start.arrays())
        return {"kind": self.kind, "name": self.name, **settings}, arrays

    @classmethod
    def from_description(
        cls, described: dict[str, Any], arrays: Arrays, *, labels: int
    ) -> PublicStartEmbedding:
        """Return the embedding that ``describe`` took apart.

        Raises:
            CorruptBundle: settings or arrays that do not fit together.
        """
        with rebuilding():
            reference = PublicReference(**{name: described[name] for name in _FIELDS})
            start = PublicStart.from_arrays(part_of(arrays, _PREFIX))
            if [pool.width for pool in start.pools] != [labels]:
                raise CorruptBundle("bundle: public models of other labels")
        return cls(start, reference)

    @property
    @override
    def space(self) -> str:
        """Describe the points in plain words."""
        return f"{self.start.space.dimension} features made of public rows"
