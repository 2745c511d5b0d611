"""Pictures of points within a radius, for an embedding with a decoder."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.norms import Norm, unit_moves
from reticent.core.regions import Box

Images = npt.NDArray[np.float32]

_DIRECTIONS = 64


class Decodes(Protocol):
    """An embedding that may have a decoder."""

    def pictures(self, embeddings: npt.ArrayLike, /) -> Images | None:
        """Return pictures of points, shape (n, height, width), or None."""


def farthest_neighbours(
    embedding: Decodes,
    points: Array,
    *,
    radius: float,
    norm: Norm,
    domain: Box,
    shown: int,
    seed: int,
) -> tuple[Images, Images] | None:
    """Return decoded points, and the least similar decoded points at distance ``radius`` from each.

    Args:
        embedding: the embedding, which may decode.
        points: public points within ``domain``, shape (k, d).
        radius: R.
        norm: norm of the neighbourhood.
        domain: the public box. Neighbours are clipped to it.
        shown: number of neighbours of each point.
        seed: seed of directions.

    Returns:
        Pictures of the points, shape (k, height, width), and of neighbours, shape (k, shown,
        height, width), or None if there is no decoder. Neighbours that differ most in l2 from the
        point's picture come first. This is a search, not a proof: others may differ more.
    """
    decoded = embedding.pictures(points)
    if decoded is None:
        return None
    random = np.random.default_rng(seed)
    moves = radius * unit_moves(points.shape[1], norm, directions=_DIRECTIONS, random=random)
    found = []
    for point, picture in zip(points, decoded, strict=True):
        around = embedding.pictures(domain.clip(point + moves))
        assert around is not None
        change = np.square(around - picture).sum(axis=(1, 2))
        found.append(around[np.argsort(-change)[:shown]])
    return decoded, np.stack(found)
