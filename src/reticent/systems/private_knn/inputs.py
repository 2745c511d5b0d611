"""Checks of the Private-kNN estimators, before anything is kept, spent or computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from reticent.core.arrays import Array, Integers
from reticent.core.checks import one_each
from reticent.core.errors import InvalidInput, InvalidParameter, UnknownName
from reticent.core.extras import is_torch_module
from reticent.core.guarantees import AddRemove, Unit, data_set_name
from reticent.core.settings import a_part
from reticent.neighbours import PointGrid, Records
from reticent.neighbours.integer_points import Points
from reticent.neighbours.records import key_bytes
from reticent.systems.features import Features, ends_of
from reticent.systems.input_rows import input_rows as input_rows
from reticent.tables.schema import TabularSchema
from reticent.tables.shards import Shards
from reticent.training.features import (
    FeatureMap,
    HogFeatures,
    IdentityFeatures,
    ModuleFeatures,
    Origin,
)

if TYPE_CHECKING:
    from torch import nn


FEATURE_MAPS = ("hog", "upright hog")
"""Feature maps that go by a name."""

_HOG_CELL = 4

_AT_ONCE = 2**10
"""Number of records whose points stay in the cache."""


def shaped(estimator: Any) -> Features:
    """Return the part ``features`` of an estimator of neighbours.

    Raises:
        InvalidParameter: it is no such part, or sets what neighbours do not use.
    """
    given: Features = a_part(estimator.features, Features, name="features")
    return given.only("schema", "map", "range", of=estimator)


def checked_persons(
    persons: Sequence[Any] | npt.NDArray[Any] | None, records: int
) -> list[Any] | None:
    """Return the persons as a list, if there is one for every record and they can break ties.

    Raises:
        InvalidInput: another number of persons, or one that is no text, bytes or integer. Keys are
            never shown.
    """
    if persons is None:
        return None
    found = one_each(persons, records, name="persons")
    for key in found:
        key_bytes(key)
    return found


def grid_of(
    feature_range: Any, feature_map: FeatureMap, features: int, schema: TabularSchema | None
) -> PointGrid:
    """Return the public grid that features are moved to, settled before any query is seen.

    Args:
        feature_range: a pair (lower, upper), a grid, or None where the feature map or the schema
            knows where features lie.
        feature_map: the map.
        features: number of features.
        schema: schema of the rows, or None.

    Raises:
        InvalidParameter: no range for a map that knows none, or one that does not fit.
    """
    if isinstance(feature_range, PointGrid):
        if feature_range.dimension != features:
            raise InvalidParameter(
                f"features, range: expected a grid of {features} features, got "
                f"{feature_range.dimension}"
            )
        return feature_range
    if feature_range is None and isinstance(feature_map, IdentityFeatures):
        feature_range = ends_of(schema)
    if feature_range is None:
        ball = feature_map.ball
        if ball is None:
            raise InvalidParameter(
                f"features, range: the feature map ({feature_map.name}) does not know the range "
                "of its features; expected the public (lower, upper) ends of every feature, or "
                "PointGrid.around(features of public rows)"
            )
        return PointGrid.in_ball(ball.center, ball.radius)
    if not isinstance(feature_range, (tuple, list)) or len(feature_range) != 2:
        raise InvalidParameter(
            "features, range: expected a pair (lower, upper), a PointGrid or None, got "
            f"{type(feature_range).__name__}"
        )
    try:
        return PointGrid.of_range(feature_range[0], feature_range[1], features=features)
    except InvalidInput as error:
        raise InvalidParameter(f"features, {error}") from error


def blocked_records(
    inputs: Array | Shards,
    codes: Integers,
    persons: list[Any] | None,
    *,
    feature_map: FeatureMap,
    grid: PointGrid,
) -> Records:
    """Return records as points, read a block at a time.

    Args:
        inputs: shape (n, p), or shards of as many rows.
        codes: shape (n,), places of labels.
        persons: one name for each record, or None.
        feature_map, grid: public map and grid.

    Raises:
        InvalidInput: NaN or infinity.
    """

    def labelled() -> Iterator[tuple[Points, Integers]]:
        first = 0
        for points in point_blocks(inputs, feature_map, grid):
            yield points, codes[first : first + len(points)]
            first += len(points)

    return Records.of_blocks(labelled(), len(codes), persons, dimension=grid.dimension)


def point_blocks(
    inputs: Array | Shards, feature_map: FeatureMap, grid: PointGrid
) -> Iterator[Points]:
    """Yield records as points, a block at a time.

    Args:
        inputs: shape (n, p), or shards.
        feature_map, grid: public map and grid.
    """
    blocks = (
        inputs.blocks()
        if isinstance(inputs, Shards)
        else (inputs[first : first + _AT_ONCE] for first in range(0, max(1, len(inputs)), _AT_ONCE))
    )
    for rows in blocks:
        yield grid.points(feature_map.features(rows))


def protected(data_set: str | None, persons: Sequence[Any] | None) -> AddRemove:
    """Return what a plan for one fit protects.

    That is a person's records where ``persons`` say whose they are, one record otherwise.

    Raises:
        InvalidParameter: no such name for a data set.
    """
    return AddRemove(1, Unit.RECORD if persons is None else Unit.PERSON, data_set_name(data_set))


def feature_map_of(
    choice: str | FeatureMap | nn.Module | None, shape: tuple[int, ...]
) -> FeatureMap:
    """Return the feature map that an estimator was asked for, for inputs of ``shape``.

    Raises:
        UnknownName: a name that is not in ``FEATURE_MAPS``.
        InvalidParameter: neither name, feature map nor torch module, or "hog" for inputs that
            are no pictures.
    """
    if choice is None:
        return IdentityFeatures()
    if isinstance(choice, FeatureMap):
        return choice
    if is_torch_module(choice):
        return ModuleFeatures(choice, shape, Origin.PUBLIC)
    if not isinstance(choice, str):
        raise InvalidParameter(
            "features, map: expected a name, a feature map or a torch module, got "
            f"{type(choice).__name__}"
        )
    if choice not in FEATURE_MAPS:
        raise UnknownName(
            f"features, map={choice!r}: expected one of {', '.join(FEATURE_MAPS)}, a FeatureMap "
            "or a torch module"
        )
    planes = picture_shape(shape)
    return HogFeatures(
        image_shape=planes,
        cell=min(_HOG_CELL, min(planes[1:]) // 2),
        orientations=9,
        upright=choice != "hog",
    )


def picture_shape(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Return channels, height and width of inputs of ``shape``.

    Raises:
        InvalidParameter: the inputs are not pictures.
    """
    if len(shape) == 2:
        return (1, *shape)
    if len(shape) == 3:
        return shape
    raise InvalidParameter(
        "features, map='hog': expected pictures of shape (n, height, width), got inputs of "
        f"shape {shape}"
    )
