"""Votes that fall with the distance, in whole steps, from a public radius on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reticent.core.arrays import Integers
from reticent.core.checks import count
from reticent.core.errors import InvalidParameter
from reticent.neighbours.integer_points import POINT_RADIUS

WEIGHT_STEPS = 2**16
"""Integer steps in one whole vote."""

LEAST_WEIGHT = 2**12
"""Weights below this count as nothing, which limits the number of answers that a record takes part
in.
"""


@dataclass(frozen=True, kw_only=True)
class RadiusKernel:
    """The share of a vote that a record has at an exact squared distance of a query.

    It is a whole vote up to ``inner``, then (1 - share of the way from inner^2 to radius^2) to the
    power ``power``, rounded down. It is nothing where that is below a sixteenth of a vote, and
    nothing from ``radius`` on.

    **Guarantee.** A record's weight is computed in integers from its own distance and public
    numbers, so no other record changes a step of it. Each is 0 or within LEAST_WEIGHT to
    WEIGHT_STEPS.

    Attributes:
        squared_inner: largest squared distance, in grid steps, at which a vote is whole, at least
            0.
        squared_radius: least squared distance at which a vote is nothing, above squared_inner.
        power: 0 (a whole vote everywhere within the radius), 1 or 2.

    Example:
        >>> kernel = RadiusKernel(squared_inner=0, squared_radius=100, power=1)
        >>> (kernel.weights(np.array([0, 50, 95, 100])) / WEIGHT_STEPS).round(3).tolist()
        [1.0, 0.5, 0.0, 0.0]
    """

    squared_inner: int
    squared_radius: int
    power: int

    def __post_init__(self) -> None:
        count(self.squared_inner, name="squared_inner", minimum=0)
        count(self.squared_radius, name="squared_radius")
        if not self.squared_inner < self.squared_radius <= 4 * POINT_RADIUS**2 + 1:
            raise InvalidParameter(
                f"squared_radius={self.squared_radius}: expected more than squared_inner="
                f"{self.squared_inner}, and at most {4 * POINT_RADIUS**2 + 1}"
            )
        if self.power not in (0, 1, 2) or isinstance(self.power, bool):
            raise InvalidParameter(f"power={self.power!r}: expected 0, 1 or 2")

    def weights(self, squared: Integers) -> Integers:
        """Return the steps of vote at squared distances ``squared``, same shape, int64."""
        room = self.squared_radius - np.asarray(squared, dtype=np.int64)
        width = self.squared_radius - self.squared_inner
        if self.power == 0:
            return np.where(room > 0, WEIGHT_STEPS, 0).astype(np.int64)
        share = np.clip(room, 0, width) * WEIGHT_STEPS // width
        if self.power == 2:
            share = share * share // WEIGHT_STEPS
        return np.asarray(np.where(share >= LEAST_WEIGHT, share, 0), dtype=np.int64)
