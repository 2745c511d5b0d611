"""The input of a plan: public rows as numbers, their labels and their kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Integers
from reticent.core.checks import finite_array, one_of
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.planning.tasks import Task
from reticent.systems.record_labels import record_labels
from reticent.tables.drafting import schema_for
from reticent.tables.frames import named_rows
from reticent.tables.schema import TabularSchema
from reticent.training.public_start import KINDS

_MOST_COLUMNS = 120
"""Most columns of numbers for a table: rows with more are taken for embeddings."""


def public_rows(
    X: Any, schema: TabularSchema | None
) -> tuple[Array, TabularSchema | None, tuple[str, ...]]:
    """Return public rows as numbers, the schema that made them, and notes about it.

    Args:
        X: an array or a data frame.
        schema: schema of the columns, or None to draft one from a data frame that needs it.

    Raises:
        InvalidInput: rows that cannot be used.
    """
    known = schema_for(schema, X)
    if known is None:
        values, _ = named_rows(X)
        return finite_array(values, name="X", ndim=2), None, ()
    notes = () if schema is not None else (known.note,)
    return known.encode(X), known, notes


def public_labels(
    y: npt.ArrayLike | None, rows: int, classes: Sequence[Any] | None
) -> tuple[Integers | None, tuple[Any, ...]]:
    """Return places of public labels, or None, and the list of all labels.

    Args:
        y: labels, shape (rows,), or None.
        rows: the number of public rows.
        classes: all labels, or None for those in ``y``.

    Raises:
        InvalidInput, InvalidParameter: labels that cannot be used, or fewer than two.
    """
    if y is not None:
        found, codes = record_labels(y, rows, "observed" if classes is None else classes)
        return codes, tuple(found.tolist())
    if classes is None:
        raise InvalidParameter(
            "classes: expected the labels that there are, since there is no y to find them in"
        )
    known = np.unique(np.asarray(list(classes)))
    if len(known) < 2:
        raise InvalidParameter(f"classes: expected at least two, got {len(known)}")
    return None, tuple(known.tolist())


def kind_of_rows(rows: str | None, columns: int, schema: TabularSchema | None) -> str:
    """Return the kind of rows, as ``PublicStartClassifier`` takes it.

    Args:
        rows: a kind, or None: then a table if there are few columns or a schema, else an embedding.
        columns: the number of columns, encoded.
        schema: schema of the columns, or None.
    """
    if rows is not None:
        return one_of(rows, tuple(KINDS), name="rows")
    return "table" if schema is not None or columns <= _MOST_COLUMNS else "embedding"


def checked_costs(cost: npt.ArrayLike | None, classes: int) -> Array | None:
    """Return a matrix of costs, shape (classes, classes), or None.

    Args:
        cost: cost of the answer of column j's label if row i's is true.
        classes: the number of labels.

    Raises:
        InvalidInput: another shape, or a number that is not finite.
    """
    if cost is None:
        return None
    found = finite_array(cost, name="cost", ndim=2)
    if found.shape != (classes, classes):
        raise InvalidInput(f"cost: expected shape={(classes, classes)}, got shape={found.shape}")
    return found


def without_schema(task: Task) -> Task:
    """Return the task for encoded rows and places of labels, as stand-ins have them."""
    return replace(task, schema=None, labels=())
