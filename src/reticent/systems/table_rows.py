"""Frames in: rows of a table as numbers, by a public schema, for every estimator alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.errors import InvalidInput
from reticent.tables.drafting import schema_for
from reticent.tables.frames import Names, named_rows, rows_named_alike
from reticent.tables.schema import TabularSchema


def rows_to_fit(
    estimator: Any, X: Any, public_X: Any = None
) -> tuple[npt.NDArray[Any], Any, Names | None]:
    """Return private records and public rows as numbers, and names of columns.

    Sets ``schema_``, which later rows are encoded by (``rows_as_fitted``) and a bundle holds; None
    where all columns are numbers. A schema is the estimator's own, or drafted from public rows that
    are a data frame with words, dates or missing values. Private records have no part in it.

    Args:
        estimator: about to be fitted, with a setting ``schema``.
        X: private records. There may be none of them.
        public_X: public rows, or None.

    Raises:
        InvalidInput: rows that do not fit the schema, or no schema for words.
        InvalidParameter: a schema that is none.
    """
    schema = schema_for(estimator.schema, public_X)
    estimator.schema_ = schema
    if schema is None:
        records, names = named_rows(X)
        if names is not None and getattr(records, "dtype", np.dtype(float)).kind == "O":
            raise InvalidInput(
                "X: expected numbers, got columns of words, dates or missing values; pass schema=, "
                "or public_X as a data frame, from which one is drafted"
            )
        alike = (
            None
            if public_X is None
            else rows_named_alike(public_X, names, of="the private records", name="public_X")
        )
        return records, alike, names
    public = None if public_X is None else encoded(schema, public_X, name="public_X")
    return encoded(schema, X, name="X"), public, None


def numbers_of(estimator: Any, X: Any) -> Any:
    """Return private records as numbers once ``rows_to_fit`` has settled the schema; they are
    themselves where there is none.
    """
    return X if estimator.schema_ is None else encoded(estimator.schema_, X, name="X")


def encoded(schema: TabularSchema, X: Any, *, name: str) -> Array:
    """Return encoded rows, shape (n, dimension). There may be none of them.

    Args:
        schema: of the columns.
        X: a data frame, or an array by position.
        name: what the caller calls it.
    """
    if len(X) == 0:
        return np.zeros((0, schema.dimension))
    return schema.encode(X, name=name)
