"""The distance within which a record votes on a query: radii from public rows, or one for all."""

from __future__ import annotations

import math
from dataclasses import dataclass

from reticent.core.checks import positive
from reticent.core.errors import InvalidParameter
from reticent.core.settings import Group
from reticent.neighbours import POINT_RADIUS, RadiusKernel
from reticent.neighbours.exhaustive import Exhaustive
from reticent.neighbours.integer_points import Points

_FARTHEST = 4 * POINT_RADIUS**2
"""Largest squared distance of two integer points."""

_INNER = 16
"""A whole vote is given where this part of ``share`` of the public rows is."""


@dataclass(frozen=True, kw_only=True)
class Ball(Group):
    """Rule for which private records are near a query, by public things alone, and how far each
    votes.

    Args:
        share: share of the public rows within the radius of a query, in (0, 1], used where
            ``radius`` is None.
        radius: one radius for all queries, above 0, in units of the features, or None for
            ``share``.
        power: power of the fall of a vote between half the radius (with ``share``: the distance
            that a sixteenth of these rows are within) and the radius: 0, 1 or 2.

    Example:
        >>> Ball(share=0.1).get_params()
        {'share': 0.1, 'radius': None, 'power': 1}

    References:
        - Zhu, Zhao, Guo and Wang (2023), "'Private prediction strikes back!' Private kernelized
          nearest neighbors with individual Rényi filter", arXiv:2306.07381.

    See Also:
        reticent.IndividualKNNClassifier: the estimator that takes it.
    """

    share: float = 0.05
    radius: float | None = None
    power: int = 1


def kernels_by_share(
    points: Points, public: Exhaustive, rows: int, *, share: float, power: int
) -> list[RadiusKernel]:
    """Return for each query the kernel whose radius holds ``share`` of the public rows.

    Args:
        points: shape (n, d), the queries.
        public: the public rows, on the same grid.
        rows: number of public rows.
        share: share in (0, 1].
        power: power of the kernels.

    Raises:
        InvalidParameter: a share outside (0, 1], or another power.

    Example:
        >>> import numpy as np
        >>> public = Exhaustive.of(np.arange(8, dtype=np.int16)[:, None])
        >>> query = np.zeros((1, 1), dtype=np.int16)
        >>> [kernel] = kernels_by_share(query, public, 8, share=0.5, power=0)
        >>> kernel.squared_radius  # rows at 0, 1, 2 and 3 are nearer
        10
    """
    if not 0 < positive(share, name="share") <= 1:
        raise InvalidParameter(f"share={share!r}: expected a number in (0, 1]")
    outer = max(1, round(share * rows))
    found = public.ranked(points, (max(1, round(outer / _INNER)), outer))
    return [
        RadiusKernel(squared_inner=min(near, far), squared_radius=far + 1, power=power)
        for near, far in found.tolist()
    ]


def kernels_of_radius(
    queries: int, radius: float, *, per_unit: float, power: int
) -> list[RadiusKernel]:
    """Return the same kernel for each of so many queries, with whole votes up to half of
    ``radius``.

    ``radius`` is in units of the features, and ``per_unit`` grid steps are one of these.

    Raises:
        InvalidParameter: a radius that is not above 0, or another power.
    """
    steps = min(positive(radius, name="radius") * per_unit, 4.0 * POINT_RADIUS)
    far = min(math.floor(steps * steps), _FARTHEST)
    kernel = RadiusKernel(squared_inner=far // 4, squared_radius=far + 1, power=power)
    return [kernel] * queries
