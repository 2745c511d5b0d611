"""Names of columns: an estimator that was fitted on a data frame finds the same columns by name in
every later one, and refuses one that lacks some or has others.

Attributes are scikit-learn's (``feature_names_in_``). Its rule, that names must also stand in the
same order, is not needed: rows are put in the order of ``fit`` here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from reticent.core.errors import InvalidInput
from reticent.tables.frames import check_columns, listed, names_of, ordered_rows, plain_rows


def keep_names(estimator: Any, names: Iterable[str] | None) -> None:
    """Sets ``feature_names_in_`` of a freshly fitted or loaded estimator, or removes it where
    there are no names.
    """
    if names is None:
        estimator.__dict__.pop("feature_names_in_", None)
    else:
        estimator.feature_names_in_ = np.array(list(names), dtype=object)


def kept_names(estimator: Any) -> list[str] | None:
    """``feature_names_in_`` as a plain list, for a bundle; None without names."""
    found = getattr(estimator, "feature_names_in_", None)
    return None if found is None else [str(name) for name in found]


def stored_names(settings: dict[str, Any], features: int) -> list[str] | None:
    """What ``kept_names`` wrote into a bundle's settings.

    Raises:
        KeyError, TypeError: it is missing, or not one text for each feature.
    """
    names = settings["feature_names"]
    if names is None:
        return None
    if (
        not isinstance(names, list)
        or len(names) != features
        or not all(isinstance(name, str) for name in names)
    ):
        raise TypeError(f"feature_names: expected {features} texts")
    return names


def rows_as_fitted(estimator: Any, X: Any) -> Any:
    """The rows of ``X`` with the columns of ``fit``, in the order of ``fit``.

    Args:
        estimator: fitted.
        X: a data frame in any order, if ``fit`` saw a data frame; otherwise an array, by position.

    Raises:
        InvalidInput: a column is missing or unknown, or only one of the two had names.
    """
    fitted, given = kept_names(estimator), names_of(X)
    kind = type(estimator).__name__
    if fitted is None and given is None:
        return plain_rows(X)
    if fitted is None:
        raise InvalidInput(
            f"X: has column names, and this {kind} was fitted without; pass X.to_numpy(), if its "
            "columns stand in the order of fit, or fit on a data frame"
        )
    if given is None:
        raise InvalidInput(
            f"X: has no column names, and this {kind} was fitted on a data frame with columns "
            f"{listed(fitted)}; pass a data frame"
        )
    check_columns(given.tolist(), fitted, by="fit", name="X")
    return ordered_rows(X, fitted)
