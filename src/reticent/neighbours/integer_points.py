"""Features moved to integer points, in a ball so small that float32 computes squared distances
without rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.checks import as_array, count, finite_array, positive
from reticent.core.errors import InvalidInput, InvalidParameter

Points = npt.NDArray[np.int16]

POINT_RADIUS = 2048
"""Largest l2 norm of an integer point: all |x|^2 + |y|^2 + 2 sum |x_i y_i| are at most 4 *
2048^2 = 2^24.
"""

_BLOCK = 256  # rows whose temporaries stay in the cache
_FARTHEST = 1e300
"""Coordinates beyond this count as this, because differences and products of finite numbers can
overflow.
"""


@dataclass(frozen=True, eq=False)
class PointGrid:
    """The public map from features to integer points: subtract ``center``, multiply by
    ``per_unit``, round, stay in the ball.

    Every point depends on its own row alone. Columns are handled in order, one after the other, so
    neither the number of rows nor a row's place among them changes a bit of it.

    *Why float32 is exact.* The squared distance is |x|^2 + |y|^2 - 2 x.y. All partial sums of its
    terms, in any order and with or without fused operations, are integers of magnitude at most
    |x|^2 + |y|^2 + 2 |x| |y| <= 2^24, and float32 holds every one of them. So the blocking of a
    matrix product does not matter.

    Attributes:
        center: shape (d,), public.
        per_unit: grid points per unit of a feature, above 0, public.

    Edge cases: a point outside the ball is pulled towards the center until it is inside. NaN and
    infinity are refused.

    Example:
        >>> grid = PointGrid.of_range(0.0, [4.0, 4.0], features=2)
        >>> grid.points([[4.0, 4.0], [2.0, 2.0]]).tolist()
        [[1447, 1447], [0, 0]]
        >>> grid = PointGrid.around([[0.0, 0.0], [2.0, 0.0]])
        >>> grid.points([[2.0, 0.0], [1.0, 1e9]]).tolist()
        [[1024, 0], [0, 2047]]
    """

    center: Array
    per_unit: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "center", finite_array(self.center, name="center", ndim=1))
        object.__setattr__(self, "per_unit", positive(self.per_unit, name="per_unit"))

    @classmethod
    def around(cls, public_features: npt.ArrayLike) -> PointGrid:
        """Return the grid that leaves twice the room that ``public_features`` need.

        Args:
            public_features: shape (n, d), never the features of the records to be protected.

        Raises:
            InvalidInput: wrong shape, empty, NaN or infinity.
        """
        features = finite_array(public_features, name="public_features", ndim=2)
        center = features.mean(axis=0)
        largest = float(np.sqrt(((features - center) ** 2).sum(axis=1).max()))
        if largest == 0:
            # Equal rows, or a single one, have no other scale than their own length.
            largest = float(np.sqrt((center**2).sum())) or 1.0
        return cls(center, POINT_RADIUS / (2 * largest))

    @classmethod
    def in_ball(cls, center: npt.ArrayLike, radius: float) -> PointGrid:
        """Return the grid whose ball of integer points is the public ball with this center, shape
        (d,), and radius, above 0.

        Raises:
            InvalidInput, InvalidParameter: NaN or infinity, or a radius that is not above 0.
        """
        return cls(
            finite_array(center, name="center", ndim=1),
            (POINT_RADIUS - 1) / positive(radius, name="radius"),
        )

    @classmethod
    def of_range(cls, lower: npt.ArrayLike, upper: npt.ArrayLike, *, features: int) -> PointGrid:
        """Return the grid for features in a public range. The corners of that box lie on the
        sphere.

        Args:
            lower, upper: ends of the range, a number for all features or shape (features,), lower <
                upper. They come from a schema, the format of the data, or public rows, never from
                the records to be protected.
            features: number of features, at least 1.

        Raises:
            InvalidParameter: other shapes, NaN or infinity, ends in the wrong order, or too far
                apart.
        """
        size = count(features, name="features")
        try:
            ends = [
                np.broadcast_to(finite_array(end, name="range"), (size,)) for end in (lower, upper)
            ]
        except ValueError as error:
            raise InvalidParameter(
                "range: expected a lower and an upper end, finite numbers for all features or "
                f"one for each of {size}"
            ) from error
        with np.errstate(over="ignore"):
            middle, half = 0.5 * ends[0] + 0.5 * ends[1], 0.5 * ends[1] - 0.5 * ends[0]
            radius = float(np.sqrt(np.square(half).sum()))
        if not (bool((half > 0).all()) and 1e-150 < radius < 1e150):
            raise InvalidParameter(
                "range: expected lower < upper for every feature, from 1e-150 to 1e150 apart"
            )
        return cls.in_ball(middle, radius)

    @property
    def dimension(self) -> int:
        """Number of features."""
        return len(self.center)

    def points(self, features: npt.ArrayLike) -> Points:
        """Return the integer points, shape (n, d), int16, of features of shape (n, d).

        Raises:
            InvalidInput: wrong shape, NaN or infinity. Values are never shown.
        """
        values = finite_array(
            features,
            name="features",
            ndim=2,
            columns=self.dimension,
            allow_empty=True,
            copy=False,
        )
        found = np.empty(values.shape, dtype=np.int16)
        room = np.empty((_BLOCK, self.dimension))
        # Rounding moves a row by at most half the root of its length.
        well_inside = max(0.0, POINT_RADIUS - 2.0 - 0.5 * np.sqrt(self.dimension)) ** 2
        for begin in range(0, len(values), _BLOCK):
            given = values[begin : begin + _BLOCK]
            with np.errstate(over="ignore"):  # an overflow is a point far outside, and cut like one
                inside = np.subtract(given, self.center, out=room[: len(given)])
                inside *= self.per_unit
                np.rint(inside, out=inside)
                well = np.einsum("ij,ij->i", inside, inside) < well_inside
            # bit-exact: ``_block`` does not scale a row well inside, whatever its rounding moved.
            # So these are its bits, and it gives the other rows.
            if not well.all():
                inside[~well] = self._block(given[~well]).T
            found[begin : begin + _BLOCK] = inside
        return found

    def _block(self, values: Array) -> Array:
        """Return points of a few rows, by columns, whose temporaries stay in the cache."""
        with np.errstate(over="ignore"):
            columns = np.ascontiguousarray(((values - self.center) * self.per_unit).T)
        np.clip(columns, -_FARTHEST, _FARTHEST, out=columns)
        largest = np.maximum(columns.max(axis=0), -columns.min(axis=0))
        # Far rows are first divided by their largest entry, since their squares would overflow.
        far = largest > POINT_RADIUS
        if far.any():
            columns[:, far] /= largest[far] / POINT_RADIUS
        columns *= np.minimum(1.0, (POINT_RADIUS - 1) / np.maximum(_norms(columns), 1e-300))
        # Rounding towards 0 cannot leave the ball. Rounding to the nearest might, by up to sqrt(d)
        # / 2.
        nearest = np.rint(columns)
        outside = _norms(nearest) > POINT_RADIUS
        if outside.any():
            nearest[:, outside] = np.trunc(columns[:, outside])
        return nearest


def check_points(points: npt.ArrayLike, *, name: str, dimension: int | None = None) -> Points:
    """Return ``points`` as int16 if they are integer points of the ball.

    Raises:
        InvalidInput: wrong shape, not integers, or outside the ball.
    """
    given = as_array(points, name=name)
    fits = given.ndim == 2 and dimension in (None, given.shape[1])
    if given.dtype != np.int16 or not fits:
        given = finite_array(given, name=name, ndim=2, columns=dimension, allow_empty=True)
    if given.shape[1] == 0:
        raise InvalidParameter(f"{name}: expected at least one feature, got shape={given.shape}")
    for begin in range(0, len(given), _BLOCK):
        values = given[begin : begin + _BLOCK].astype(np.float64, copy=False)
        whole = bool((values == np.rint(values)).all())
        if not whole or bool((np.einsum("ij,ij->i", values, values) > POINT_RADIUS**2).any()):
            raise InvalidInput(
                f"{name}: expected integer points of norm at most {POINT_RADIUS}; make them with "
                "PointGrid.points"
            )
    return given.astype(np.int16, copy=False)


def _norms(columns: Array) -> Array:
    """Return the norms of rows whose columns are given, each summed in the order of the columns."""
    total = np.zeros(columns.shape[1])
    for column in columns:
        total += column * column
    return np.asarray(np.sqrt(total))
