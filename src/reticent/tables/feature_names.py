"""Names of columns: an estimator that was fitted on a data frame refuses one with other columns, or
in another order.

The rules are scikit-learn's (``feature_names_in_``); only the message is one line.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.errors import InvalidInput

Names = npt.NDArray[np.object_]

_SHOWN = 5


def names_of(X: Any) -> Names | None:
    """The column names of a data frame (anything with ``columns``), or None where there are none,
    or none that are texts.

    Raises:
        InvalidInput: some names are texts and others are not.
    """
    columns = getattr(X, "columns", None)
    if columns is None or isinstance(columns, (str, bytes)) or not isinstance(columns, Iterable):
        return None
    names = list(columns)
    texts = sum(isinstance(name, str) for name in names)
    if texts == 0:
        return None
    if texts < len(names):
        raise InvalidInput(
            f"X: {texts} of {len(names)} column names are texts; expected all or none, convert "
            "them with "
            "X.columns = X.columns.astype(str)"
        )
    return np.array(names, dtype=object)


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


def check_names(estimator: Any, X: Any) -> None:
    """Refuses a data frame whose columns are not those of ``fit``; warns where only one of the two
    had names.

    Raises:
        InvalidInput: other names, or another order.
    """
    fitted, given = kept_names(estimator), names_of(X)
    kind = type(estimator).__name__
    if fitted is None and given is not None:
        warnings.warn(
            f"X has feature names, but {kind} was fitted without feature names",
            UserWarning,
            stacklevel=4,
        )
    elif fitted is not None and given is None:
        warnings.warn(
            f"X does not have valid feature names, but {kind} was fitted with feature names",
            UserWarning,
            stacklevel=4,
        )
    elif fitted is not None and given is not None:
        check_columns(list(given), fitted, by="fit", name="X")


def check_columns(given: list[str], expected: list[str], *, by: str, name: str) -> None:
    """Refuses columns that are not the expected ones in the expected order.

    Args:
        given, expected: names in order.
        by: what expects them, "fit" or "the schema".
        name: what the caller calls the table.

    Raises:
        InvalidInput: with the names that differ.
    """
    if given == expected:
        return
    unseen, missing = (
        [c for c in given if c not in expected],
        [c for c in expected if c not in given],
    )
    if not unseen and not missing:
        raise InvalidInput(
            f"{name}: has the columns of {by} in another order, or twice; expected "
            f"{_listed(expected)}"
        )
    differences = [f"unknown {_listed(unseen)}"] * bool(unseen) + [
        f"missing {_listed(missing)}"
    ] * bool(missing)
    raise InvalidInput(
        f"{name}: expected the columns of {by}, in their order; {', '.join(differences)}"
    )


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(repr(name) for name in names[:_SHOWN]) + more
