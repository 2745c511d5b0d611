"""A public lattice of boxes: the cell of a point, the cells that touch, and maxima over them.

Everything from the snapped point on is a whole number, so that two cells touch on every machine or
on none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Integers
from reticent.core.checks import count, finite_array, positive
from reticent.core.errors import InvalidInput, InvalidParameter

_Number = TypeVar("_Number", bound=np.generic)

MOST_CELLS = 2**27
"""Larger lattices are refused, since a table of ten labels over them would take 5 GiB."""

_STEPS = 10  # of a radius, as a power of two: a cell is wider than it must be by 0.1 % at most
_FURTHEST = 2**40  # grid steps from zero to a box's end; doubles count them exactly


@dataclass(frozen=True, kw_only=True)
class Lattice:
    """Boxes of one size, side by side along some coordinates. The outermost have no outer end.

    A point is snapped to whole steps of a public grid, s = rint(x / 2^exponent), and lies in the
    cell with index min(max((s - lower) // side, 0), shape - 1) in each of ``coordinates``. Other
    coordinates are ignored.

    **Claim.** If ``reach`` times ``side`` is at least ceil(R / 2^exponent) + 1, two points within
    l-infinity distance R (so within l1 or l2 distance R) lie in cells whose indices differ by at
    most ``reach`` in every coordinate. *Why.* Rounding two numbers that are at most R apart leaves
    whole numbers that are at most R / 2^exponent + 1 apart, so at most D = ceil(R / 2^exponent) + 1
    <= reach side. Then floor(a / side) and floor((a + D) / side) are at most reach apart, and
    cutting both off at 0 and at shape - 1 only brings them closer. Dividing a double by a power of
    two and rounding it to a whole number are exact. A point beyond 2^41 steps is moved there first,
    which is 1-Lipschitz.

    Attributes:
        exponent: exponent of the grid's step 2**exponent, in the units of the points, -900 to 900.
        lower: the first cell's lower end in each coordinate used, in steps.
        shape: number of cells along each coordinate used, at least 1 each.
        side: side of a cell in steps, at least 1.
        reach: the largest difference of indices of two cells that touch, at least 1.
        coordinates: the coordinates of a point that are used, increasing.
        dimension: number of coordinates of a point.

    Example:
        >>> lattice = Lattice(
        ...     exponent=-1, lower=(-4,), shape=(4,), side=2, reach=1, coordinates=(0,), dimension=1
        ... )
        >>> lattice.cells([[-9.0], [-1.0], [0.2], [9.0]]).tolist()
        [0, 1, 2, 3]
        >>> lattice.covers(0.5), lattice.covers(0.6)
        (True, False)
    """

    exponent: int
    lower: tuple[int, ...]
    shape: tuple[int, ...]
    side: int
    reach: int
    coordinates: tuple[int, ...]
    dimension: int

    def __post_init__(self) -> None:
        if not -900 <= count(self.exponent, name="exponent", minimum=-900) <= 900:
            raise InvalidParameter(f"exponent={self.exponent!r}: expected -900 to 900")
        for name in ("side", "reach", "dimension"):
            count(getattr(self, name), name=name)
        for name in ("lower", "shape", "coordinates"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not len(self.lower) == len(self.shape) == len(self.coordinates) >= 1:
            raise InvalidParameter(
                f"lattice: expected as many lower ends and sizes as coordinates, at least one, got "
                f"{len(self.lower)}, {len(self.shape)} and {len(self.coordinates)}"
            )
        for size in self.shape:
            count(size, name="shape")
        for low in self.lower:
            count(low, name="lower", minimum=-_FURTHEST)
        used = [count(place, name="coordinates", minimum=0) for place in self.coordinates]
        if used != sorted(set(used)) or used[-1] >= self.dimension:
            raise InvalidParameter(
                f"coordinates={self.coordinates!r}: expected increasing places below "
                f"dimension={self.dimension}"
            )
        ends = [low + size * self.side for low, size in zip(self.lower, self.shape, strict=True)]
        if math.prod(self.shape) > MOST_CELLS or max(ends) > _FURTHEST:
            raise InvalidParameter(
                f"lattice: {math.prod(self.shape)} cells that end at {max(ends)} steps; expected "
                f"at most {MOST_CELLS} and {_FURTHEST}"
            )

    @classmethod
    def over(
        cls,
        points: npt.ArrayLike,
        *,
        radius: float,
        tail: float,
        reach: int = 1,
        coordinates: tuple[int, ...] | None = None,
    ) -> Self:
        """Return the lattice of cells as small as ``radius`` and ``reach`` allow, as few as cover
        most of ``points``.

        Args:
            points: shape (n, dimension), finite, *public*.
            radius: largest l-infinity distance of neighbours, above 0.
            tail: share of ``points`` that may lie outside the cells' own ends on either side of a
                coordinate, in [0, 0.5). They count for the outermost cells.
            reach: largest difference of indices of two cells that touch.
            coordinates: the coordinates to use, or None for all.
        """
        array = finite_array(points, name="points", ndim=2)
        exponent, side = _steps(radius, reach)
        used = tuple(range(array.shape[1])) if coordinates is None else tuple(coordinates)
        ends, number = _ends_and_numbers(array[:, used], tail=tail, exponent=exponent, side=side)
        extent = ends[1] - ends[0]
        # both ends share the room that the cells have beyond their need
        first = ends[0] - (number * side - extent) // 2
        return cls(
            exponent=exponent,
            lower=tuple(first.tolist()),
            shape=tuple(number.tolist()),
            side=side,
            reach=reach,
            coordinates=used,
            dimension=array.shape[1],
        )

    @property
    def size(self) -> int:
        """Number of cells."""
        return math.prod(self.shape)

    def covers(self, radius: float) -> bool:
        """Return whether any two points within l-infinity distance ``radius`` lie in touching
        cells.
        """
        return self.reach * self.side >= _distance(positive(radius, name="radius"), self.exponent)

    def cells(self, points: npt.ArrayLike) -> Integers:
        """Return the flat index of the cell of each row of ``points`` (shape (n, dimension),
        finite). It is private where the points are.

        Raises:
            InvalidInput: wrong shape, NaN or infinity. Values are never shown.
        """
        array = finite_array(
            points, name="points", ndim=2, columns=self.dimension, allow_empty=True
        )
        with np.errstate(over="ignore"):  # an overflow is moved to the furthest step
            scaled = np.ldexp(array[:, self.coordinates], -self.exponent)
        steps = np.rint(np.clip(scaled, -2.0 * _FURTHEST, 2.0 * _FURTHEST)).astype(np.int64)
        index = (steps - np.array(self.lower)) // self.side
        last = np.array(self.shape) - 1
        return np.asarray(
            np.ravel_multi_index(tuple(np.clip(index, 0, last).T), self.shape), dtype=np.int64
        )

    @cached_property
    def center(self) -> Array:
        """Middle of every cell in the coordinates used, shape (cells, coordinates)."""
        axes = [
            np.ldexp(low + self.side * (np.arange(size) + 0.5), self.exponent)
            for low, size in zip(self.lower, self.shape, strict=True)
        ]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(self.size, -1)

    def touching_maximum(self, values: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
        """Return the largest of ``values`` over each cell and those that touch it.

        A maximum over a box is a maximum along one axis after the other, so this takes
        2 reach comparisons a coordinate. Comparisons are exact for any type.

        Args:
            values: shape (cells,).
        """
        if values.shape != (self.size,):
            raise InvalidInput(f"values: expected shape ({self.size},), got {values.shape}")
        largest = values.reshape(self.shape)
        for axis, size in enumerate(self.shape):
            widened = largest.copy()
            for shift in range(1, min(self.reach, size - 1) + 1):
                low, high = _slices(axis, None, -shift), _slices(axis, shift, None)
                np.maximum(widened[low], largest[high], out=widened[low])
                np.maximum(widened[high], largest[low], out=widened[high])
            largest = widened
        return largest.reshape(-1)

    def hops(self, marked: npt.NDArray[np.bool_], *, most: int) -> npt.NDArray[np.uint8]:
        """Return the steps between touching cells from each cell to the nearest marked one, at most
        ``most``.

        The numbers of two touching cells differ by at most 1, cut off or not.

        Args:
            marked: shape (cells,).
            most: largest number that is counted to, 1 to 255.
        """
        near, steps = marked.copy(), np.full(self.size, most, dtype=np.uint8)
        for step in range(most):
            np.minimum(steps, step, out=steps, where=near)
            near = self.touching_maximum(near)
        return steps

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, which ``Lattice(**values)`` reads back."""
        return {
            "exponent": self.exponent,
            "lower": list(self.lower),
            "shape": list(self.shape),
            "side": self.side,
            "reach": self.reach,
            "coordinates": list(self.coordinates),
            "dimension": self.dimension,
        }


def _distance(radius: float, exponent: int) -> int:
    """Return ceil(radius / 2^exponent) + 1, the largest distance in steps of two points within
    ``radius`` after rounding.
    """
    return math.ceil(math.ldexp(radius, -exponent)) + 1


def cells_along(
    points: npt.ArrayLike, *, radius: float, tail: float, reach: int = 1
) -> tuple[int, ...]:
    """Return the number of cells that ``Lattice.over`` puts along each coordinate. Over several
    coordinates there are as many as their product, which may be more than a lattice can have.

    Args:
        points, radius, tail, reach: arguments of ``Lattice.over``.

    Example:
        >>> cells_along([[0.0, 0.0], [1.9, 0.2]], radius=0.5, tail=0.0)
        (4, 1)
    """
    array = finite_array(points, name="points", ndim=2)
    exponent, side = _steps(radius, reach)
    return tuple(_ends_and_numbers(array, tail=tail, exponent=exponent, side=side)[1].tolist())


def _steps(radius: float, reach: int) -> tuple[int, int]:
    """Return the grid's exponent, and the least side of a cell in its steps."""
    exponent = math.frexp(positive(radius, name="radius"))[1] - 1 - _STEPS
    return exponent, -(-_distance(radius, exponent) // count(reach, name="reach"))


def _ends_and_numbers(
    points: Array, *, tail: float, exponent: int, side: int
) -> tuple[Integers, Integers]:
    """Return both ends of most of ``points`` in steps, shape (2, d), and numbers of cells, shape
    (d,).
    """
    ends = np.rint(np.ldexp(np.quantile(points, [tail, 1.0 - tail], axis=0), -exponent)).astype(
        np.int64
    )
    return ends, np.maximum(-(-(ends[1] - ends[0]) // side), 1)


def _slices(axis: int, first: int | None, last: int | None) -> tuple[slice, ...]:
    return (*[slice(None)] * axis, slice(first, last))
