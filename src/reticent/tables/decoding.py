"""The way back from encoded coordinates to a table's words and numbers: what an attacker's guess
says in plain words.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.checks import finite_array
from reticent.tables.schema import Categorical, Numeric, TabularSchema

Array = npt.NDArray[np.float64]


def decode(schema: TabularSchema, encoded: npt.ArrayLike) -> npt.NDArray[np.object_]:
    """The table rows that ``encoded`` says, shape (n, columns): floats in numeric columns,
    categories in others.

    Coordinates need not come from ``schema.encode``: numbers are moved to the end of their public
    range, and of a one-hot code the largest entry counts. For what ``schema.encode`` gave, this is
    its inverse, but for numbers outside their range, for rounding, and for a category that the
    schema counts as another.

    Args:
        schema: the public description of rows.
        encoded: shape (n, dimension), finite.

    Raises:
        InvalidInput: another shape, or values that are not finite.

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
        if isinstance(attribute, Numeric):
            columns.append(_numbers(attribute, block))
        elif isinstance(attribute, Categorical):
            columns.append(
                np.array(attribute.categories, dtype=object)[block.argmax(axis=1)][:, None]
            )
        else:
            columns.append(np.eye(attribute.width)[block.argmax(axis=1)])
    return np.concatenate([column.astype(object) for column in columns], axis=1)


def _numbers(attribute: Numeric, block: Array) -> Array:
    """Numbers, shape (n, 1), of coordinates of shape (n, width)."""
    unit, span = np.clip(block[:, :1], 0.0, 1.0), attribute.upper - attribute.lower
    found = attribute.lower + (
        unit * span if attribute.scale == "linear" else np.expm1(unit * math.log1p(span))
    )
    if attribute.missing is None:
        return np.asarray(found)
    absent = block[:, 1:] > 0.5 * attribute.upper_corner[1]
    return np.asarray(np.where(absent, attribute.missing, found))
