"""Inputs of an estimator as rows of numbers."""

from __future__ import annotations

import math

import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.checks import finite_array
from reticent.core.errors import InvalidInput


def input_rows(
    X: npt.ArrayLike, *, records: bool = False, name: str = "X"
) -> tuple[Array, tuple[int, ...]]:
    """Return inputs as rows, and the shape of one. Numbers of 64 bits are not copied.

    Args:
        X: shape (n, ...), numbers.
        records: whether these are private records. There may be none of them: a data set of one
            record has a neighbour without any, and to refuse it would tell the two apart.
        name: the caller's name of X.

    Raises:
        InvalidInput: not numbers, no rows (but records), no features, NaN or infinity, or a single
            axis.
    """
    values = finite_array(X, name=name, allow_empty=True, copy=False)
    if values.ndim < 2:
        raise InvalidInput(
            f"{name}: expected 2D array, got {values.ndim}D array instead with "
            f"shape={values.shape}. Reshape your data: "
            "X.reshape(-1, 1) for one feature, X.reshape(1, -1) for one query"
        )
    if values.shape[0] == 0 and not records:
        raise InvalidInput(
            f"{name}: found array with 0 sample(s) (shape={values.shape}) while a minimum of 1 is "
            "required."
        )
    features = math.prod(values.shape[1:])
    if features == 0:
        raise InvalidInput(
            f"{name}: found array with 0 feature(s) (shape={values.shape}) while a minimum of 1 is "
            "required."
        )
    return values.reshape(len(values), features), values.shape[1:]
