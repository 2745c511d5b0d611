"""Labels as numbers: of public rows, and of private records, whose set of labels is public because
somebody says so.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Integers
from reticent.core.errors import InvalidInput, InvalidParameter

Classes = Sequence[Any] | Literal["observed"]

OBSERVED: Literal["observed"] = "observed"
"""The spoken choice to publish which labels occur among the records."""

FEW_ROWS = 2_000
"""Public rows below which releases are compared across folds."""


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


def record_labels(
    y: npt.ArrayLike | None, rows: int, classes: Classes
) -> tuple[npt.NDArray[Any], Integers]:
    """Return the classes, sorted, and for each record or public row the place of its label among
    them.

    **Guarantee.** With a given list the classes do not depend on the records. With "observed" they
    are the labels that occur: who adds the only record of a label changes which answers are
    possible at all, and that is *not* private at any epsilon.

    Args:
        y: shape (rows,), one label per record.
        rows: number of records.
        classes: the labels that there are, at least two, in any order, or "observed".

    Returns:
        Classes, shape (classes,), and numbers, shape (rows,), int64.

    Raises:
        InvalidParameter: ``classes`` is neither a list nor "observed".
        InvalidInput: no labels, another number of them, none of classification, fewer than two
            classes, or a label that is none of them. Labels are never shown.

    Example:
        >>> classes, numbers = record_labels(["no", "no"], 2, ["yes", "no"])
        >>> classes.tolist(), numbers.tolist()
        (['no', 'yes'], [0, 0])
    """
    labels = _column(y, rows)
    known = np.unique(labels) if is_observed(classes) else _given(classes)
    if len(known) < 2:
        raise InvalidInput(
            f"classes: expected at least two, got {len(known)} class; name all labels that "
            "there are in classes"
        )
    if rows == 0:
        return known, np.zeros(0, dtype=np.int64)
    try:
        places = np.minimum(np.searchsorted(known, labels), len(known) - 1)
        same = np.asarray(known[places] == labels)
    except (TypeError, ValueError):  # labels and classes that cannot be compared
        same, places = np.zeros(rows, dtype=bool), np.zeros(rows, dtype=np.int64)
    if same.shape != (rows,) or not bool(same.all()):
        raise InvalidInput("y: expected labels from classes only; labels are not shown")
    return known, places.astype(np.int64, copy=False)


def is_observed(classes: Classes) -> bool:
    """Return whether the labels were taken from the records."""
    return isinstance(classes, str) and classes == OBSERVED


def _column(y: npt.ArrayLike | None, rows: int) -> npt.NDArray[Any]:
    # A device that restores labels needs no scikit-learn.
    from sklearn.utils import column_or_1d
    from sklearn.utils.multiclass import check_classification_targets

    if y is None:
        raise InvalidInput(
            "y: expected labels; this estimator requires y to be passed, but the target y is None"
        )
    try:
        labels = np.asarray(column_or_1d(y, warn=True))
    except Warning:  # scikit-learn's own warning about a column vector, where warnings are errors
        raise
    except Exception as error:
        # Whatever an array-like raises when it is read; sklearn's text could show labels.
        raise InvalidInput(
            f"y: expected one label per record in one list, got {type(y).__name__}"
        ) from error
    if labels.shape != (rows,):
        raise InvalidInput(
            f"y: expected one label for each of {rows} records, got shape={labels.shape}"
        )
    if labels.dtype.kind == "f" and not bool(np.isfinite(labels).all()):
        raise InvalidInput("y: contains NaN or infinity; leave out records without a label")
    if rows == 0:
        return labels
    if labels.dtype == object:  # whole numbers from a column of a table
        plain = np.asarray(labels.tolist()) if {*map(type, labels)} == {int} else labels
        labels = plain if plain.dtype.kind == "i" else labels
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that there are many classes
            check_classification_targets(labels)
            np.unique(labels)
    except (ValueError, TypeError):
        raise InvalidInput(
            "y: Unknown label type: expected class labels of one kind; leave out records without a "
            "label"
        ) from None
    return labels


def _given(classes: Any) -> npt.NDArray[Any]:
    expected = (
        "classes: expected the labels that there are, as a public list, or classes='observed' "
        "to publish which of them occur "
        f"among the records, got {type(classes).__name__}"
    )
    if isinstance(classes, (str, bytes)) or classes is None:
        raise InvalidParameter(expected)
    try:
        listed = np.asarray(list(classes))
        known = np.unique(listed)
    except Exception as error:
        raise InvalidParameter(f"{expected}, not all of one kind") from error
    if (
        listed.ndim != 1
        or known.dtype.kind not in "iufbOSU"
        or (known.dtype.kind == "f" and not np.isfinite(known).all())
    ):
        raise InvalidParameter(expected)
    return known
