"""Data frames of pandas, polars and pyarrow as plain rows with names, and releases as frames.

Whatever the library, columns are found by name. Frames of other kinds count if they have
``columns`` and can be read by numpy. Arrays and lists have no names, and their columns count by
position.

An estimator that was fitted on a data frame finds the same columns by name in every later one. It
refuses one that lacks some or has others. Attributes are scikit-learn's (``feature_names_in_``).
Its rule that names must also stand in the same order is not needed, because rows are put in the
order of ``fit`` here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.checks import as_array
from reticent.core.errors import InvalidInput
from reticent.core.extras import require
from reticent.core.releases import Release, Rows
from reticent.tables.columns import Column, arrow_cells, arrow_column, column_of

Names = npt.NDArray[np.object_]

_PLAIN = (np.ndarray, list, tuple)
_SHOWN = 5


@dataclass(frozen=True, eq=False)
class NamedRows:
    """An array whose columns have names, the smallest data frame that every estimator takes.

    Attributes:
        values: shape (n, columns).
        columns: one name for each column.

    Example:
        >>> rows = NamedRows(np.array([[1.0, 2.0]]), ("age", "weight"))
        >>> ordered_rows(rows, ["weight", "age"]).tolist()
        [[2.0, 1.0]]
    """

    values: npt.NDArray[Any]
    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[1] != len(self.columns):
            raise InvalidInput(
                f"columns: expected one name for each column of values, got {len(self.columns)} "
                f"names and shape={self.values.shape}"
            )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Return the values."""
        return np.array(self.values, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice) -> NamedRows:
        """Return some of the rows."""
        return NamedRows(self.values[rows], self.columns)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the values."""
        return self.values.shape


def names_of(X: Any) -> Names | None:
    """Return the column names of a data frame, or None where there are none, or none that are
    texts.

    Raises:
        InvalidInput: some names are texts and others are not, a name stands there twice, or the
            frame is lazy.
    """
    names = None if isinstance(X, _PLAIN) else _columns(X)
    if names is None:
        return None
    texts = sum(isinstance(name, str) for name in names)
    if texts == 0:
        return None
    if texts < len(names):
        raise InvalidInput(
            f"X: {texts} of {len(names)} column names are texts; expected all or none, convert "
            "them with X.columns = X.columns.astype(str)"
        )
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise InvalidInput(
            f"X: has more than one column {listed(twice)}; every name may stand there once"
        )
    return np.array(names, dtype=object)


def plain_rows(X: Any) -> Any:
    """Return ``X`` itself, or the rows of a data frame as an array, in its own order of columns.

    Numbers and booleans become float64 (a missing value is NaN). A frame that holds anything else
    becomes an array of objects (a missing value is None).

    Example:
        >>> plain_rows([[1, 2]])
        [[1, 2]]
    """
    frame = _narwhals(X)
    return X if frame is None else _values(frame, list(frame.columns))


def ordered_rows(X: Any, names: Sequence[str]) -> npt.NDArray[Any]:
    """Return the columns ``names`` of a data frame, in that order, as ``plain_rows`` gives them.

    Args:
        X: a data frame that has them all.
        names: the names of the columns.
    """
    frame = _narwhals(X)
    if frame is not None:
        return _values(frame, list(names))
    found = _columns(X) or []
    table = as_array(X, name="X")
    if table.ndim != 2 or table.shape[1] != len(found):
        raise InvalidInput(f"X: has {len(found)} column names and shape={table.shape}")
    places = {name: place for place, name in enumerate(found)}
    return np.asarray(table[:, [places[name] for name in names]])


def ordered_columns(X: Any, names: Sequence[str]) -> list[Column]:
    """Return the columns ``names`` of a data frame, whose cells are those of ``ordered_rows``.

    Args:
        X: a data frame that has them all.
        names: the names of the columns.
    """
    frame = _narwhals(X)
    if frame is None or _is_numeric(frame, names):
        return [column_of(cells) for cells in ordered_rows(X, names).T]
    return [_column(frame.get_column(name)) for name in names]


def named_rows(X: Any) -> tuple[Any, Names | None]:
    """Return the input of a fit: rows in the frame's own order, and their names or None."""
    names = names_of(X)
    return (plain_rows(X) if names is None else ordered_rows(X, names.tolist())), names


def rows_named_alike(X: Any, names: Iterable[str] | None, *, of: str, name: str) -> Any:
    """Return rows that go with others: by the same names, in the order of the others, or both by
    position.

    Args:
        X: a data frame or an array.
        names: the names of the others' columns, or None.
        of: the name of the others in messages, such as "the private records".
        name: the caller's name of X.

    Raises:
        InvalidInput: only one of the two has names, or other columns.
    """
    given = names_of(X)
    if (names is None) != (given is None):
        raise InvalidInput(f"{name}: expected column names as {of} have them, or none in both")
    if names is None or given is None:
        return plain_rows(X)
    wanted = list(names)
    check_columns(given.tolist(), wanted, by=of, name=name)
    return ordered_rows(X, wanted)


def check_columns(given: Sequence[str], expected: Sequence[str], *, by: str, name: str) -> None:
    """Refuse columns that are not the expected ones, in whatever order.

    Args:
        given, expected: names, each once.
        by: the part that expects them, "fit" or "the schema".
        name: the caller's name of the table.

    Raises:
        InvalidInput: columns differ. The message is one line with their names.
    """
    known, seen = set(expected), set(given)
    unseen = [column for column in given if column not in known]
    missing = [column for column in expected if column not in seen]
    differences = [f"unknown {listed(unseen)}"] * bool(unseen)
    differences += [f"missing {listed(missing)}"] * bool(missing)
    if differences:
        raise InvalidInput(f"{name}: expected the columns of {by}; {', '.join(differences)}")


def keep_names(estimator: Any, names: Iterable[str] | None) -> None:
    """Set ``feature_names_in_`` of a freshly fitted or loaded estimator, or remove it where there
    are no names.
    """
    if names is None:
        estimator.__dict__.pop("feature_names_in_", None)
    else:
        estimator.feature_names_in_ = np.array(list(names), dtype=object)


def kept_names(estimator: Any) -> list[str] | None:
    """Return ``feature_names_in_`` as a plain list for a bundle, or None without names."""
    found = getattr(estimator, "feature_names_in_", None)
    return None if found is None else [str(name) for name in found]


def stored_names(settings: dict[str, Any], features: int) -> list[str] | None:
    """Return the names that ``kept_names`` wrote into a bundle's settings.

    Raises:
        KeyError, TypeError: they are missing, or not one text for each feature.
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
    """Return the rows of ``X`` with the columns of ``fit``, in the order of ``fit``.

    They are encoded where the estimator has a schema.

    Args:
        estimator: a fitted estimator.
        X: a data frame in any order, if ``fit`` saw a data frame. Otherwise an array, by position.

    Raises:
        InvalidInput: a column is missing or unknown, or only one of the two had names.
    """
    schema = getattr(estimator, "schema_", None)
    if schema is not None:
        return schema.encode(X)
    fitted = getattr(estimator, "feature_names_in_", None)
    if fitted is None and isinstance(X, _PLAIN):
        return X
    given, kind = names_of(X), type(estimator).__name__
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
            f"{listed(list(fitted))}; pass a data frame"
        )
    check_columns(given.tolist(), list(fitted), by="fit", name="X")
    return ordered_rows(X, list(fitted))


def rows_of(X: Any) -> Rows:
    """Return where released values go back to: the library of the frame that was asked about, and
    its index.
    """
    frame = _narwhals(X)
    if frame is None:
        return Rows()
    import narwhals.stable.v1 as nw

    return Rows(str(frame.implementation.value), nw.maybe_get_index(frame))


def framed(release: Release, X: Any, columns: Iterable[str]) -> Release:
    """Return ``release`` with the parts that ``to_frame`` needs: names of the released columns, and
    the rows' own library and index.
    """
    rows = Rows() if isinstance(X, _PLAIN) else rows_of(X)
    return replace(release, columns=tuple(columns), rows=rows)


def listed(names: Sequence[str]) -> str:
    """Return the first few names, for a message."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(repr(name) for name in names[:_SHOWN]) + more


def _columns(X: Any) -> list[Any] | None:
    if isinstance(X, _PLAIN):
        return None
    if type(X).__name__ == "LazyFrame":
        raise InvalidInput("X: is a lazy frame; collect() it, so that its rows are counted first")
    names = getattr(X, "column_names", None)  # pyarrow, whose ``columns`` are values
    columns = getattr(X, "columns", None) if names is None else names
    if callable(columns) or columns is None or isinstance(columns, (str, bytes)):
        return None
    return list(columns) if isinstance(columns, Iterable) else None


def _narwhals(X: Any) -> Any:
    """Return a frame of a library that narwhals knows, or None."""
    if isinstance(X, (*_PLAIN, NamedRows)) or _columns(X) is None:
        return None
    import narwhals.stable.v1 as nw

    names = _columns(X)
    if names is not None and len(set(map(str, names))) < len(names):
        return None  # read by position, by numpy; with texts, names_of has refused it
    if hasattr(X, "schema") and not hasattr(X, "select"):
        return None
    if type(X).__module__.partition(".")[0] == "pyarrow" and type(X).__name__ == "RecordBatch":
        X = require("pyarrow", extra="arrow").Table.from_batches([X])
    found = nw.from_native(X, eager_only=True, pass_through=True)
    return found if isinstance(found, nw.DataFrame) else None


def _is_numeric(frame: Any, names: Sequence[Any]) -> bool:
    import narwhals.stable.v1 as nw

    kinds = [frame.get_column(name).dtype for name in names]
    return all(kind.is_numeric() or kind == nw.Boolean for kind in kinds)


def _values(frame: Any, names: list[Any]) -> npt.NDArray[Any]:
    columns = [frame.get_column(name) for name in names]
    if _is_numeric(frame, names):
        table = np.empty((len(frame), len(columns)))
        for place, column in enumerate(columns):
            table[:, place] = _numbers(column)
        return table
    cells = np.empty((len(frame), len(columns)), dtype=object)
    for place, column in enumerate(columns):
        cells[:, place] = _objects(column)
    return cells


def _column(column: Any) -> Column:
    """Return a column of a frame in its own type, or of Python objects where it has none."""
    cells = arrow_cells(lambda _: column.to_arrow())
    found = None if cells is None else arrow_column(cells)
    return Column(_objects(column)) if found is None else found


def _objects(column: Any) -> npt.NDArray[Any]:
    values = np.array(column.to_list(), dtype=object)
    values[column.is_null().to_numpy()] = None
    return values


def _numbers(column: Any) -> npt.NDArray[np.float64]:
    import narwhals.stable.v1 as nw

    numbers = column.cast(nw.Float64).to_numpy()
    return np.asarray(numbers, dtype=np.float64)
