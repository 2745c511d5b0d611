"""The way back from encoded coordinates to a table's words and numbers, which puts an attacker's
guess in plain words.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.checks import finite_array
from reticent.tables.attributes import (
    Attribute,
    Categorical,
    Instant,
    Numeric,
    OneHot,
    Ordered,
    Truth,
)
from reticent.tables.schema import TabularSchema


def decode(schema: TabularSchema, encoded: npt.ArrayLike) -> npt.NDArray[np.object_]:
    """Return the table rows that ``encoded`` stands for, shape (n, columns): floats in numeric
    columns, categories in others.

    Coordinates need not come from ``schema.encode``. Numbers are moved to the end of their public
    range, and of a one-hot code the largest entry counts. For results of ``schema.encode`` this is
    its inverse, but for numbers outside their range, for rounding, and for a category that the
    schema counts as another.

    Args:
        schema: the public description of rows.
        encoded: shape (n, dimension), finite.

    Raises:
        InvalidInput: ``encoded`` has another shape, or values that are not finite.

    Example:
        >>> schema = TabularSchema((Numeric("age", 0, 100), Categorical("sex", ("Female", "Male"))))
        >>> decode(schema, [[0.5, 0.1, 0.6]]).tolist()
        [[50.0, 'Male']]
    """
    values = finite_array(
        encoded, name="encoded", ndim=2, columns=schema.dimension, allow_empty=True
    )
    columns: list[npt.NDArray[Any]] = []
    for attribute, (_, part, _) in zip(schema.attributes, schema.groups, strict=True):
        block = values[:, part]
        columns.append(_cells(attribute, block))
    return np.concatenate([column.astype(object) for column in columns], axis=1)


def _cells(attribute: Attribute, block: Array) -> npt.NDArray[Any]:
    """Return cells of the attribute's columns, shape (n, columns), from coordinates (n, width)."""
    if isinstance(attribute, Numeric):
        return _numbers(attribute, block)
    if isinstance(attribute, OneHot):
        return np.asarray(np.eye(attribute.width)[block.argmax(axis=1)])
    if isinstance(attribute, Instant | Ordered):
        read = _times if isinstance(attribute, Instant) else _ranked
        cells = read(attribute, block)
        if attribute.missing:
            cells[block[:, 1] > 0.5 * attribute.upper_corner[1]] = None
        return cells[:, None]
    values: list[Any]
    if isinstance(attribute, Categorical):
        values = list(attribute.categories)
    elif isinstance(attribute, Truth):
        values = [False, True, None]
    else:
        values = [*(f"bucket {place}" for place in range(attribute.buckets)), None]
    names = np.empty(len(values), dtype=object)
    names[:] = values
    return np.asarray(names[block.argmax(axis=1)][:, None])


def _times(attribute: Any, block: Array) -> npt.NDArray[np.object_]:
    lower, upper = attribute.ends
    times = lower + np.clip(block[:, 0], 0.0, 1.0) * (upper - lower)
    return np.asarray(times.round().astype(np.int64).astype("datetime64[us]").astype(object))


def _ranked(attribute: Any, block: Array) -> npt.NDArray[np.object_]:
    top = len(attribute.categories) - 1
    ranks = np.rint(np.clip(block[:, 0], 0.0, 1.0) * top).astype(np.int64)
    return np.array(attribute.categories, dtype=object)[ranks]


def _numbers(attribute: Numeric, block: Array) -> Array:
    """Return numbers, shape (n, 1), from coordinates of shape (n, width)."""
    unit, span = np.clip(block[:, :1], 0.0, 1.0), attribute.upper - attribute.lower
    found = attribute.lower + (
        unit * span if attribute.scale == "linear" else np.expm1(unit * math.log1p(span))
    )
    if attribute.missing is None:
        return np.asarray(found)
    absent = block[:, 1:] > 0.5 * attribute.upper_corner[1]
    return np.asarray(np.where(absent, attribute.missing, found))
