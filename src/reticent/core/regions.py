"""Boxes, which are the public domains that inputs are clipped to and the neighbourhoods that are
certified.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.checks import finite_array
from reticent.core.errors import InvalidInput
from reticent.core.norms import Norm


@dataclass(frozen=True, eq=False)
class Box:
    """A product of closed intervals.

    Attributes:
        lower: shape (d,), float64, finite.
        upper: shape (d,), float64, finite, at least ``lower`` everywhere.
    """

    lower: Array
    upper: Array

    def __post_init__(self) -> None:
        lower = finite_array(self.lower, name="lower", ndim=1)
        upper = finite_array(self.upper, name="upper", ndim=1)
        if lower.shape != upper.shape:
            raise InvalidInput(
                f"box: lower has shape {lower.shape}, upper {upper.shape}; expected the same"
            )
        if np.any(lower > upper):
            where = int(np.argmax(lower > upper))
            raise InvalidInput(f"box: lower > upper at coordinate {where}")
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    @classmethod
    def cube(cls, dimension: int, half_width: float) -> Box:
        """Return the box [-half_width, half_width] in each of ``dimension`` coordinates.

        Example:
            >>> Box.cube(2, 3.0).upper.tolist()
            [3.0, 3.0]
        """
        edge = np.full(dimension, half_width, dtype=np.float64)
        return cls(-edge, edge)

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return len(self.lower)

    @property
    def center(self) -> Array:
        """Midpoint, shape (d,)."""
        return np.asarray(0.5 * (self.lower + self.upper))

    @property
    def half_width(self) -> Array:
        """Half the side lengths, shape (d,)."""
        return np.asarray(0.5 * (self.upper - self.lower))

    def diameter(self, norm: Norm) -> float:
        """Return the distance of two opposite corners, rounded up: no two points of the box are
        farther apart.

        Example:
            >>> round(Box([0.0, 0.0], [3.0, 4.0]).diameter(Norm.L2), 9)
            5.0
        """
        return float(norm.of(2.0 * self.half_width)) * (1.0 + 2.0**-40) or 2.0**-1000

    def clip(self, points: npt.ArrayLike) -> Array:
        """Return ``points`` moved to their nearest point of the box, same shape. It is 1-Lipschitz
        in every norm here.
        """
        return np.asarray(np.clip(np.asarray(points, dtype=np.float64), self.lower, self.upper))

    def contains(self, points: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Return whether each row of ``points`` (shape (..., d)) lies in the box."""
        array = np.asarray(points, dtype=np.float64)
        return np.asarray(((array >= self.lower) & (array <= self.upper)).all(axis=-1))
