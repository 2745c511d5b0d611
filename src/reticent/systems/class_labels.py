"""Labels of public rows as class numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Integers
from reticent.core.checks import as_array
from reticent.core.errors import InvalidInput

FEW_ROWS = 2_000
"""Public rows below which releases are compared across folds."""


def class_labels(y: npt.ArrayLike | None, rows: int) -> tuple[npt.NDArray[Any], Integers]:
    """Return the distinct labels in rising order, and for each row the place of its own among them.

    Args:
        y: one label per row, shape (rows,), or (rows, 1) with scikit-learn's warning. Labels are
            whole numbers, truth values or words.
        rows: number of rows.

    Returns:
        Classes, shape (classes,), and numbers, shape (rows,).

    Raises:
        InvalidInput: none, another number of them, no class labels, or one class only.

    Example:
        >>> classes, numbers = class_labels(["no", "yes", "no"], 3)
        >>> classes.tolist(), numbers.tolist()
        (['no', 'yes'], [0, 1, 0])
    """
    if y is None:
        raise InvalidInput(
            "y: requires y to be passed, but the target y is None; labels are what the "
            "training keeps"
        )
    labels = as_array(y, name="y")
    if labels.ndim == 2 and labels.shape[1] == 1:
        from sklearn.utils import column_or_1d

        labels = column_or_1d(labels, warn=True)
    if labels.shape != (rows,):
        raise InvalidInput(f"y: expected {rows} labels, got shape={labels.shape}")
    if labels.dtype.kind == "f" and not (
        np.isfinite(labels).all() and (labels == np.floor(labels)).all()
    ):
        raise InvalidInput(
            "y: Unknown label type: expected class labels, got continuous or non-finite numbers"
        )
    if labels.dtype.kind not in "fiubOSU":
        raise InvalidInput(f"y: expected class labels, got dtype={labels.dtype}")
    try:
        classes, numbers = np.unique(labels, return_inverse=True)
    except Exception as error:  # entries that cannot be sorted
        raise InvalidInput("y: Unknown label type: expected class labels of one kind") from error
    if len(classes) < 2:
        raise InvalidInput("y: expected at least two classes, got one class")
    return classes, numbers.astype(np.int64)


def restored_labels(stored: Any, *, expected: int | None = None) -> npt.NDArray[Any]:
    """Return the labels that a bundle holds as a list, as the sorted array that they were.

    Args:
        stored: a JSON value.
        expected: number of labels, or None for any number from 2.

    Raises:
        InvalidInput: no list of different labels of one kind, in rising order, or another number of
            them.

    Example:
        >>> restored_labels(["no", "yes"]).tolist()
        ['no', 'yes']
    """
    kinds = {type(label) for label in stored} if isinstance(stored, list) else set()
    if len(kinds) != 1 or not kinds <= {str, int, float, bool}:
        raise InvalidInput("labels: expected a list of words or numbers of one kind")
    labels = np.asarray(stored)
    if (
        len(labels) < 2
        or not np.array_equal(np.unique(labels), labels)
        or len(labels) != (expected or len(labels))
    ):
        raise InvalidInput(
            f"labels: expected {expected or 'two or more'} different ones in rising order, got "
            f"{len(labels)}"
        )
    return labels


def balanced_folds(labels: Integers, folds: int) -> Integers:
    """Return a fold for each row, from 0, every label spread over as many as it can be.

    Example:
        >>> balanced_folds(np.array([1, 0, 1, 0, 1]), 2).tolist()
        [0, 0, 1, 1, 0]
    """
    found = np.empty(len(labels), dtype=np.int64)
    found[np.argsort(labels, kind="stable")] = np.arange(len(labels)) % folds
    return found
