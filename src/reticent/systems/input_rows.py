"""Inputs of an estimator as rows of numbers."""

from __future__ import annotations

from math import prod

import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.checks import finite_array
from reticent.core.errors import InvalidInput


def input_rows(
    X: npt.ArrayLike, *, name: str = "X", records: bool = False
) -> tuple[Array, tuple[int, ...]]:
    """Return inputs as rows, and the shape of one. Numbers of 64 bits are not copied.

    Args:
        X: shape (n, ...), numbers.
        name: the caller's name for them.
        records: whether these are private records. There may be none of them: a data set of one
            record has a neighbour without any, and to refuse it would tell the two apart.

    Raises:
        InvalidInput: not numbers, no rows (but records), no features, NaN or infinity, or a single
            axis.
    """
    values = finite_array(X, name=name, allow_empty=True, copy=False)
    if values.ndim < 2:
        raise InvalidInput(
            f"{name}: expected 2D array, got {values.ndim}D array instead with "
            f"shape={values.shape}. Reshape your data: "
            "X.reshape(-1, 1) for one feature, X.reshape(1, -1) for one input"
        )
    for length, what in ((len(values), "sample(s)"), (prod(values.shape[1:]), "feature(s)")):
        if length == 0 and not (records and what == "sample(s)"):
            raise InvalidInput(
                f"{name}: found array with 0 {what} (shape={values.shape}) while a minimum of 1 is "
                "required."
            )
    return values.reshape(len(values), prod(values.shape[1:])), values.shape[1:]
