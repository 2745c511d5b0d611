"""Label columns as numbers: of public rows, for one task or several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.checks import as_array, positive
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.systems.class_labels import class_labels
from reticent.systems.power.tasks import Labels, Tasks


def task_labels(
    y: npt.ArrayLike | None, rows: int, *, weights: Sequence[float] | None
) -> tuple[tuple[npt.NDArray[Any], ...], Labels, Tasks]:
    """Labels of public rows as class numbers, for one task or several.

    Args:
        y: shape (rows,), or (rows, tasks): as ``class_labels`` takes them, column by column.
        rows: how many.
        weights: what each task counts, above 0; None for all alike.

    Returns:
        The labels of each task in rising order; shape (rows,), the class of each row; and what
        classes say about tasks.

    Raises:
        InvalidInput: labels that do not fit the rows, or a task of one label.
        InvalidParameter: weights that do not fit the tasks.

    Example:
        >>> y = [["a", "x"], ["b", "x"], ["b", "y"]]
        >>> labels, classes, tasks = task_labels(y, 3, weights=None)
        >>> [known.tolist() for known in labels], classes.tolist()
        ([['a', 'b'], ['x', 'y']], [0, 1, 2])
    """
    columns: list[Any] = [y]
    if y is not None:
        labels = as_array(y, name="y")
        if labels.ndim == 2 and labels.shape[1] > 1:
            columns = list(labels.T)
            if len(labels) != rows:
                raise InvalidInput(f"y: expected {rows} rows of labels, got shape={labels.shape}")
    shares = _task_weights(weights, len(columns))
    found = [class_labels(column, rows) for column in columns]
    table = np.column_stack([numbers for _, numbers in found])
    kinds, classes = np.unique(table, axis=0, return_inverse=True)
    places = tuple(np.ascontiguousarray(kinds[:, place]) for place in range(len(columns)))
    return tuple(known for known, _ in found), classes.ravel(), Tasks(places, shares)


def _task_weights(weights: Sequence[float] | None, tasks: int) -> tuple[float, ...]:
    """Weights with sum 1."""
    if weights is None:
        return (1.0 / tasks,) * tasks
    if not isinstance(weights, (tuple, list)) or len(weights) != tasks:
        raise InvalidParameter(
            f"task_weights={weights!r}: expected a number for each of the {tasks} label column(s) "
            "of y"
        )
    checked = [positive(weight, name="task_weights") for weight in weights]
    return tuple(weight / sum(checked) for weight in checked)
