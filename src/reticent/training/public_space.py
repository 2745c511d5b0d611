"""The space where records meet public rows: features on a public grid, turned and scaled by public
numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from reticent.core.arrays import Array, Arrays
from reticent.core.checks import count, finite_array, probability, real
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.grids.whole_numbers import clipped, exact_product, of_length

UNIT = 2.0**16
"""Grid steps in the root mean square length of public rows."""

INTERCEPT = 0.3
"""Length of the constant column beside a feature vector of length 1."""

REACH = 2.0**19
"""Coordinates of points are cut to so many grid steps."""

LENGTH = 2.0**14
"""Length of a record's direction, in grid steps."""

MOST_COMPONENTS = 4096

_INPUT_REACH = 2.0**21
_DIRECTION_STEPS = 2.0**20
_ROOM = 4.0
_FARTHEST = 16.0
_LEAST_SPREAD = 1e-3
_BLOCK = 4096


@runtime_checkable
class RowMap(Protocol):
    """A feature map that keeps the promises of ``reticent.training.features.FeatureMap``."""

    name: str

    def features(self, inputs: npt.ArrayLike) -> Array:
        """Return features, shape (n, d), finite, each row's from that row alone."""


@dataclass(frozen=True, eq=False)
class PublicSpace:
    """The public map from features to points of whole numbers.

    **Guarantee.** A record's point depends on that record and on this space alone, to the last bit.
    Features are cut to a public box, rounded to a public grid entry by entry, and turned by an
    exact product of whole numbers. So no record moves another's point. Nothing here was learned
    from private records, as long as the rows given to ``around`` are public.

    Attributes:
        center: shape (d,), subtracted.
        per_unit: shape (d,), grid steps of the input grid per unit of a feature.
        directions: shape (d, m), whole numbers.
        scales: shape (m,), points' grid steps per unit of the product.
    """

    center: Array
    per_unit: Array
    directions: Array
    scales: Array

    @classmethod
    def around(
        cls,
        features: npt.ArrayLike,
        *,
        components: int | None,
        whitening: float,
        lower_upper: tuple[Array, Array] | None,
        alike: bool,
    ) -> PublicSpace:
        """Return the space of public rows: their principal components, scaled to a root mean square
        length of 1.

        Args:
            features: shape (n, d), features of public rows, never of the records to be protected.
            components: the number of components that are kept, or None for all that the rows span.
            whitening: the power, in [0, 1], of its standard deviation by which a component is
                divided.
            lower_upper: public ends that columns are scaled by, or None to scale by public rows.
            alike: True if columns have one unit, so that they are not scaled each by itself.

        Raises:
            InvalidInput, InvalidParameter: rows or settings do not fit.
        """
        rows = finite_array(features, name="public_X", ndim=2)
        if len(rows) < 2:
            raise InvalidInput(f"public_X: expected at least 2 rows, got {len(rows)}")
        power = whitening_of(whitening)
        center = rows.mean(axis=0)
        if lower_upper is not None:
            units = 0.5 * (lower_upper[1] - lower_upper[0])
        elif alike:
            units = np.full(rows.shape[1], float(rows.std()) or 1.0)
        else:
            units = rows.std(axis=0)
            units = np.where(units > 1e-12 * np.maximum(np.abs(center), 1e-300), units, 1.0)
        scaled = (rows - center) / units
        far = _ROOM * float(np.abs(scaled).max())
        reach = far if alike or lower_upper is not None else min(far, _FARTHEST)
        scaled = np.clip(scaled, -reach, reach) if reach else scaled
        spread, directions = _principal(scaled, components)
        floor = _LEAST_SPREAD * float(spread.max())
        if floor == 0:
            raise InvalidInput("public_X: expected rows that differ")
        weights = np.maximum(spread, floor) ** -power
        size = math.sqrt(float(np.square(spread * weights).sum()))
        per_unit = _INPUT_REACH / (reach * units)
        whole = np.rint(directions * _DIRECTION_STEPS)
        scales = weights * UNIT / size * reach / (_INPUT_REACH * _DIRECTION_STEPS)
        return cls(center, per_unit, whole, scales)

    @classmethod
    def of_range(cls, lower: Array, upper: Array) -> PublicSpace:
        """Return the space of a public box, whose columns keep their directions."""
        features = len(lower)
        if features > MOST_COMPONENTS:
            raise InvalidParameter(
                f"feature_range: expected at most {MOST_COMPONENTS} features, got {features}; "
                "give public rows, and components"
            )
        half = 0.5 * (upper - lower)
        scales = np.full(
            features, UNIT / math.sqrt(features / 3.0) / (_INPUT_REACH * _DIRECTION_STEPS)
        )
        return cls(
            0.5 * (lower + upper),
            _INPUT_REACH / half,
            np.eye(features) * _DIRECTION_STEPS,
            scales,
        )

    @property
    def features(self) -> int:
        """The number of features of a row."""
        return len(self.center)

    @property
    def dimension(self) -> int:
        """The number of coordinates of a point."""
        return len(self.scales)

    def points(self, features: Array) -> Array:
        """Return points, shape (n, dimension), whole numbers of at most ``REACH``.

        A public row's points have a root mean square length of ``UNIT``.

        Args:
            features: shape (n, features), finite.
        """
        found = np.empty((len(features), self.dimension))
        longest = math.sqrt(float(np.square(self.directions).sum(axis=0).max()))
        bound = _INPUT_REACH * math.sqrt(self.features) * longest
        for start in range(0, len(features), _BLOCK):
            part = slice(start, start + _BLOCK)
            with np.errstate(over="ignore"):
                steps = np.clip(
                    (features[part] - self.center) * self.per_unit, -_INPUT_REACH, _INPUT_REACH
                )
            # bit-exact: entry by entry before and after a product of whole numbers.
            turned = exact_product(np.rint(steps), self.directions, bound=bound)
            found[part] = np.clip(np.rint(turned * self.scales), -REACH, REACH)
        return found

    def arrays(self) -> Arrays:
        """Return arrays for a bundle, which ``from_arrays`` reads back."""
        return {
            "center": self.center,
            "per_unit": self.per_unit,
            "directions": self.directions,
            "scales": self.scales,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> PublicSpace:
        """Return the space that ``arrays`` described.

        Raises:
            KeyError, InvalidInput: the arrays describe no space.
        """
        center, per_unit, scales = (
            finite_array(arrays[name], name=name, ndim=1)
            for name in ("center", "per_unit", "scales")
        )
        directions = finite_array(arrays["directions"], name="directions", ndim=2)
        fit = directions.shape == (len(center), len(scales)) and len(per_unit) == len(center)
        if not fit or bool((directions != np.rint(directions)).any()):
            raise InvalidInput("space: expected whole directions from all features to all scales")
        return cls(center, per_unit, directions, scales)


def directions_of(points: Array, *, intercept: float) -> Array:
    """Return points with a constant column, scaled to one length.

    They have shape (n, m + 1) and are whole numbers of an l2 norm of at most ``LENGTH``.

    Args:
        points: shape (n, m), from ``PublicSpace.points``.
        intercept: the constant, in root mean square lengths of public rows, at least 0.
    """
    constant = np.full((len(points), 1), np.rint(intercept * UNIT))
    return of_length(np.concatenate([points, constant], axis=1), LENGTH)


def cut_directions(points: Array, *, intercept: float, reach: float) -> Array:
    """Return points with a constant column, those longer than ``reach`` cut to it.

    They have shape (n, m + 1) and are whole numbers of an l2 norm of at most ``LENGTH``, which
    stands for ``reach``. Unlike ``directions_of`` this keeps lengths, on which a target may depend
    linearly.

    Args:
        points: shape (n, m), from ``PublicSpace.points``.
        intercept: the constant, in root mean square lengths of public rows, at least 0.
        reach: the largest length in the same unit, from ``reach_of``.
    """
    constant = np.full((len(points), 1), np.rint(intercept * UNIT))
    rows = clipped(np.concatenate([points, constant], axis=1), reach * UNIT)
    # Rounding towards 0, from a little below, cannot lengthen a row.
    return np.trunc(rows * (LENGTH / (reach * UNIT) * (1.0 - 2.0**-40)))


def whitening_of(value: Any) -> float:
    """Return ``value`` in [0, 1].

    Raises:
        InvalidParameter: it is not.
    """
    power = real(value, name="whitening")
    if not 0 <= power <= 1:
        raise InvalidParameter(f"whitening={value!r}: expected a number in [0, 1]")
    return power


def range_of(
    feature_range: Any, features: int, *, name: str = "range"
) -> tuple[Array, Array] | None:
    """Return the public ends of every feature, or of other columns of that ``name``, or None where
    none are given.

    Raises:
        InvalidParameter: ``feature_range`` is no pair of finite ends, lower below upper.
    """
    if feature_range is None:
        return None
    expected = (
        f"{name}: expected a pair (lower, upper) of public ends, numbers or one for each of "
        f"{features} columns, lower < upper"
    )
    if not isinstance(feature_range, (tuple, list)) or len(feature_range) != 2:
        raise InvalidParameter(f"{expected}, got {type(feature_range).__name__}")
    try:
        lower, upper = (
            np.broadcast_to(finite_array(end, name=name), (features,)).copy()
            for end in feature_range
        )
    except ValueError as error:
        raise InvalidParameter(expected) from error
    with np.errstate(over="ignore"):
        wide = upper - lower
    if not bool(((wide > 1e-150) & (wide < 1e150)).all()):
        raise InvalidParameter(expected)
    return lower, upper


def reach_of(value: Any) -> float:
    """Return ``value`` in [0.1, 16].

    Raises:
        InvalidParameter: it is not.
    """
    number = real(value, name="reach")
    if not 0.1 <= number <= 16:
        raise InvalidParameter(f"reach={value!r}: expected a number from 0.1 to 16")
    return number


def share_of(value: Any, *, name: str) -> float:
    """Return ``value`` in (0, 1].

    Raises:
        InvalidParameter: it is not.
    """
    if real(value, name=name) == 1:
        return 1.0
    return probability(value, name=name, allow_zero=False)


def _principal(rows: Array, components: int | None) -> tuple[Array, Array]:
    """Return standard deviations along the principal directions, falling, and these as columns."""
    columns = rows.shape[1]
    kept = min(columns, MOST_COMPONENTS)
    if components is not None:
        kept = min(count(components, name="components"), kept)
    variances, directions = eigh(
        rows.T @ rows / len(rows), subset_by_index=(columns - kept, columns - 1)
    )
    spread = np.sqrt(np.maximum(variances, 0.0))[::-1]
    return spread, directions[:, ::-1]
