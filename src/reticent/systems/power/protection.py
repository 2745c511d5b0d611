"""What neighbours of a table row are where every attribute has a radius of its own, and which of
its encoded coordinates are protected and which are not.

An attribute is *free* where neighbours agree in it: a release may do with it what it likes.
Protected coordinates are taken in whole multiples of a 4096th of their own radius, so that all
that a guarantee rests on is arithmetic of integers.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Integers
from reticent.core.checks import real
from reticent.core.errors import InvalidParameter
from reticent.core.guarantees import Adjacency, Neighborhood
from reticent.core.norms import Norm
from reticent.mechanisms.k_norm import MOST_L2_COORDINATES
from reticent.tables.attributes import Attribute, Instant, Numeric, Ordered
from reticent.tables.schema import TabularSchema

UNIT = 2**12
"""Steps in a radius. Neighbours' coordinates are at most one step further apart, because each is
rounded down."""

RADII_SPACE = (
    "table record, every attribute in multiples of its own radius, equal in those of radius 0"
)

LARGEST_SHARED_RADIUS = 0.86
"""Within an l2 radius up to this one, two records hold the same categories (two are 1 apart), and
the same numbers are missing (one is at least sqrt(3/4) from any that is there)."""

_LEAST = 2.0**-16
_DAY = 86_400e6  # microseconds


@dataclass(frozen=True)
class AttributeRadii:
    """A radius for every attribute of a schema: neighbours may differ in all at once, each by its
    own.

    Attributes:
        radii: name and radius of each attribute, in the schema's order. In the column's own units:
            of a number its unit, of a date days, of ordered categories ranks. 0: neighbours agree
            in it, it is not protected. Infinity: any value. A category has 0 or infinity.

    Example:
        >>> schema = TabularSchema.numbers(2, 0, 10, names=["age", "income"])
        >>> AttributeRadii.of({"age": 2, "income": 0}, schema).describe()
        'age within 2; income not at all'
    """

    radii: tuple[tuple[str, float], ...]

    @classmethod
    def of(cls, radii: Mapping[str, float], schema: TabularSchema) -> AttributeRadii:
        """Checked radii.

        Raises:
            InvalidParameter: an attribute that is missing or unknown, a radius that its kind of
                attribute has no meaning for, or nothing that is protected.
        """
        names = [attribute.name for attribute in schema.attributes]
        unknown = [str(name) for name in radii if name not in names]
        missing = [name for name in names if name not in radii]
        if unknown or missing:
            raise InvalidParameter(
                "radius: expected a radius for every attribute of the schema (0: not protected, "
                f"infinity: any value); missing: {', '.join(missing) or 'none'}; unknown: "
                f"{', '.join(unknown) or 'none'}"
            )
        found = tuple(
            (attribute.name, _checked(attribute, radii[attribute.name]))
            for attribute in schema.attributes
        )
        if not any(radius for _, radius in found):
            raise InvalidParameter(
                "radius: every attribute has radius 0, so nothing is protected; give at least one "
                "a radius above 0"
            )
        return cls(found)

    def describe(self) -> str:
        """In words, in the table's own units."""
        return "; ".join(
            f"{name} {'not at all' if not radius else reach(radius)}" for name, radius in self.radii
        )

    def to_dict(self) -> dict[str, float | str]:
        """Plain JSON values, infinity as "any"; ``of`` reads them after ``numbers``."""
        return {name: "any" if math.isinf(radius) else radius for name, radius in self.radii}

    @staticmethod
    def numbers(values: Mapping[str, float | str]) -> dict[str, float]:
        """What ``to_dict`` wrote, "any" as infinity."""
        return {
            name: math.inf if radius == "any" else float(radius) for name, radius in values.items()
        }


def reach(radius: float) -> str:
    """A radius above 0 in words."""
    return "to any value" if math.isinf(radius) else f"within {radius:g}"


def _checked(attribute: Attribute, radius: float) -> float:
    value = real(radius, name=f"radius[{attribute.name!r}]")
    if math.isnan(value) or value < 0:
        raise InvalidParameter(
            f"radius[{attribute.name!r}]={radius!r}: expected a number of at least 0, or infinity"
        )
    if attribute.codes and value not in (0.0, math.inf):
        raise InvalidParameter(
            f"radius[{attribute.name!r}]={radius!r}: a category has no distances; expected 0 (not "
            "protected) or infinity (any category)"
        )
    share = encoded_radius(attribute, value)
    if value and share < _LEAST:
        raise InvalidParameter(
            f"radius[{attribute.name!r}]={radius!r}: expected at least 1/65536 of the "
            "column's public range; narrow the range, or give 0 if it is not to be protected"
        )
    return value


def encoded_radius(attribute: Attribute, radius: float) -> float:
    """How far apart two encoded values of the attribute may be, at most 1, if they are within
    ``radius`` in its own units; up to a rounding error.
    """
    if math.isinf(radius) or attribute.codes:
        return 1.0 if radius else 0.0
    if isinstance(attribute, Numeric):
        span = attribute.upper - attribute.lower
        if attribute.scale == "log":  # steepest at the lower end
            return min(1.0, math.log1p(radius) / math.log1p(span))
        return min(1.0, radius / span)
    if isinstance(attribute, Instant):
        lower, upper = attribute.ends
        return min(1.0, radius * _DAY / (upper - lower))
    assert isinstance(attribute, Ordered)
    return min(1.0, math.floor(radius) / (len(attribute.categories) - 1))


@dataclass(frozen=True)
class Protection:
    """The free and the protected coordinates of encoded rows.

    Guarantee:
        If x, x' are neighbours, ``free`` coordinates of both are equal, and steps(x) - steps(x') is
        at most ``largest_step`` long in ``norm``.

    Attributes:
        schema: public.
        radius: an l2 radius of encoded rows, at most ``LARGEST_SHARED_RADIUS``; or a radius for
            each attribute.
    """

    schema: TabularSchema
    radius: float | AttributeRadii

    def __post_init__(self) -> None:
        if isinstance(self.radius, AttributeRadii):
            if self.radius != AttributeRadii.of(dict(self.radius.radii), self.schema):
                raise InvalidParameter("radius: expected radii of the schema's attributes")
        elif not _LEAST <= self.radius <= LARGEST_SHARED_RADIUS:
            raise InvalidParameter(
                f"radius={self.radius!r}: expected {_LEAST:.1e} to {LARGEST_SHARED_RADIUS} where "
                "categories are not protected; or a radius for each attribute"
            )

    @property
    def adjacency(self) -> Adjacency:
        """Neighbours, if each attribute has its own radius."""
        assert isinstance(self.radius, AttributeRadii)
        described = [self.schema.digest, sorted(self.radius.to_dict().items())]
        digest = hashlib.sha256(json.dumps(described).encode()).hexdigest()[:32]
        return Neighborhood(Norm.LINF, 1.0, RADII_SPACE, digest)

    @property
    def norm(self) -> Norm:
        """In which protected coordinates of neighbours are at most a radius apart: l2, or each by
        its own.
        """
        return Norm.LINF if isinstance(self.radius, AttributeRadii) else Norm.L2

    @cached_property
    def groups(self) -> tuple[tuple[slice, bool, float], ...]:
        """Encoded coordinates of each protected attribute, whether they are a one-hot code, and
        their encoded radius.
        """
        return tuple(self._groups())

    def _groups(self) -> Iterator[tuple[slice, bool, float]]:
        for attribute, (name, part, one_hot) in zip(
            self.schema.attributes, self.schema.groups, strict=True
        ):
            if isinstance(self.radius, AttributeRadii):
                radius = dict(self.radius.radii)[name]
                near, any_value = encoded_radius(attribute, radius), math.isinf(radius)
            else:
                near, any_value = 0.0 if one_hot else self.radius, False
            if near:
                # Within a finite radius both numbers are there, or both are missing.
                whole = one_hot or any_value
                yield slice(part.start, part.stop if whole else part.start + 1), one_hot, near

    @cached_property
    def protected(self) -> Integers:
        """Places of protected coordinates, in order."""
        places = [np.arange(part.start, part.stop) for part, _, _ in self.groups]
        return np.concatenate([np.zeros(0, dtype=np.int64), *places])

    @cached_property
    def free(self) -> Integers:
        """Places of all others."""
        return np.setdiff1d(np.arange(self.schema.dimension), self.protected)

    @property
    def answers_all(self) -> bool:
        """Whether noise can be drawn for all protected coordinates at once."""
        return self.norm is not Norm.L2 or len(self.protected) <= MOST_L2_COORDINATES

    @cached_property
    def scales(self) -> Array:
        """Steps in one unit of each protected coordinate."""
        return np.concatenate(
            [
                np.zeros(0),
                *(np.full(part.stop - part.start, UNIT / near) for part, _, near in self.groups),
            ]
        )

    @cached_property
    def largest_step(self) -> int:
        """Steps that stand for one radius, rounding included."""
        if self.norm is Norm.LINF:
            return UNIT + 1
        return UNIT + 2 + math.isqrt(len(self.protected))

    def steps(self, rows: Array) -> Array:
        """Protected coordinates in whole steps, shape (n, protected), as float64 integers.

        Args:
            rows: shape (n, dimension), encoded.
        """
        # One-hot codes are 0 or UNIT, whatever root they stand for.
        values = rows[:, self.protected]
        values = np.where(self._codes, values > 0, values)
        return np.asarray(np.floor(values * self.scales))

    @cached_property
    def _codes(self) -> npt.NDArray[np.bool_]:
        return np.concatenate(
            [
                np.zeros(0, dtype=np.bool_),
                *(np.full(part.stop - part.start, one_hot) for part, one_hot, _ in self.groups),
            ]
        )

    def given(self, rows: Array) -> Array:
        """What a release may do with as it likes, shape (n, 1 + free): a one, and the free
        coordinates.
        """
        return np.column_stack([np.ones(len(rows)), rows[:, self.free]])
