"""Checks of arrays and parameters, made before anything is computed, spent or written."""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from reticent.core.errors import InvalidInput, InvalidParameter, UnknownName

if TYPE_CHECKING:
    import numpy.typing as npt

    from reticent.core.arrays import Array


def finite_array(
    values: Any,
    *,
    name: str,
    ndim: int | None = None,
    columns: int | None = None,
    allow_empty: bool = False,
    copy: bool = True,
) -> Array:
    """Return ``values`` as a finite float64 array of the expected shape.

    Args:
        values: anything that numpy reads as real numbers.
        name: the caller's name for it in messages.
        ndim: required number of axes, or None.
        columns: required length of the last axis, or None.
        allow_empty: whether an array without elements is accepted.
        copy: False to return ``values`` themselves where they are float64.

    Raises:
        InvalidInput: not numeric, wrong shape, empty, or with NaN or infinity. Values are never
            shown.
    """
    # imported here, because the command line checks numbers and starts without numpy
    import numpy as np

    array = as_array(values, name=name)
    if array.dtype.kind == "c":
        raise InvalidInput(
            f"{name}: Complex data not supported; expected real numbers, got dtype={array.dtype}"
        )
    if array.dtype.kind == "O":
        array = _numbers(array, name)
    if array.dtype.kind not in "fiub":
        raise InvalidInput(f"{name}: expected real numbers, got dtype={array.dtype}")
    array = array.astype(np.float64, copy=copy)
    if ndim is not None and array.ndim != ndim:
        raise InvalidInput(f"{name}: expected {ndim} axes, got shape={array.shape}")
    if columns is not None and (array.ndim == 0 or array.shape[-1] != columns):
        raise InvalidInput(
            f"{name}: expected {columns} features in the last axis, got shape={array.shape}"
        )
    if array.size == 0 and not allow_empty:
        raise InvalidInput(f"{name}: expected at least one value, got shape={array.shape}")
    if not finite_sum(array) and (bad := ~np.isfinite(array)).any():
        kind = "NaN" if np.isnan(array).any() else "infinity"
        raise InvalidInput(
            f"{name}: contains {kind} ({int(bad.sum())} of {array.size} values are not finite)"
        )
    return array


def finite_sum(array: Array) -> bool:
    """Return whether a sum of all numbers is finite: only if they are. It makes no array of their
    size.
    """
    import numpy as np

    with np.errstate(all="ignore"):
        return bool(np.isfinite(array.sum()))


def as_array(values: Any, *, name: str) -> npt.NDArray[Any]:
    """Return ``values`` as an array of any type.

    Raises:
        InvalidInput: numpy cannot read it, it is a sparse matrix of scipy's, which numpy takes for
            one object, or it has masked values.

    Example:
        >>> as_array([1, 2], name="labels").tolist()
        [1, 2]
    """
    import numpy as np

    sparse = sys.modules.get("scipy.sparse")  # no object is of a class that was never loaded
    if sparse is not None and sparse.issparse(values):
        raise InvalidInput(f"{name}: sparse input is not supported; pass a dense array")
    try:
        masked, array = np.ma.is_masked(values), np.asarray(values)
    except MemoryError:
        raise
    except Exception as error:
        # An array-like may raise anything when it is read, as a tensor that requires a gradient
        # does.
        raise InvalidInput(
            f"{name}: expected an array of numbers, got {type(values).__name__}, which numpy "
            "cannot read; turn it into an array "
            "first (a tensor by detach().cpu().numpy())"
        ) from error
    if masked:
        raise InvalidInput(f"{name}: contains masked values; expected a number in every place")
    return array


def _numbers(array: npt.NDArray[Any], name: str) -> Array:
    """Return an object array whose entries are all numbers as float64."""
    try:
        return array.astype("float64")
    except MemoryError:
        raise
    except Exception:
        # The original error would show the entry, and values of inputs are never shown.
        raise InvalidInput(
            f"{name}: expected real numbers, got entries that are not numbers, or beyond 1.8e308"
        ) from None


def positive(value: Any, *, name: str) -> float:
    """Return ``value`` as a finite float above 0.

    Raises:
        InvalidParameter: not a number, NaN, infinite, zero or negative.

    Example:
        >>> positive(2, name="epsilon")
        2.0
    """
    number = real(value, name=name)
    if not (math.isfinite(number) and number > 0):
        raise InvalidParameter(f"{name}={value!r}: expected a finite number above 0")
    return number


def probability(value: Any, *, name: str, allow_zero: bool = True) -> float:
    """Return ``value`` as a float in [0, 1), or in (0, 1) without ``allow_zero``.

    Raises:
        InvalidParameter: out of that range or not a number.
    """
    number = real(value, name=name)
    if not (0 <= number < 1) or (number == 0 and not allow_zero):
        raise InvalidParameter(
            f"{name}={value!r}: expected a number in {'[0' if allow_zero else '(0'}, 1)"
        )
    return number


def count(value: Any, *, name: str, minimum: int = 1) -> int:
    """Return ``value`` as an integer of at least ``minimum``.

    Raises:
        InvalidParameter: not an integer, or below ``minimum``.
    """
    if type(value) is int and value >= minimum:  # asking an abstract class takes longer
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < minimum:
        raise InvalidParameter(f"{name}={shown(value)}: expected an integer of at least {minimum}")
    return int(value)


def check_jobs(n_jobs: int | None) -> None:
    """Raise InvalidParameter if ``n_jobs`` is no number of workers, before anything is charged.

    Raises:
        InvalidParameter: neither None nor a whole number other than 0.
    """
    whole = isinstance(n_jobs, numbers.Integral) and not isinstance(n_jobs, bool)
    if n_jobs is not None and (not whole or n_jobs == 0):
        raise InvalidParameter(
            f"n_jobs={n_jobs!r}: expected a whole number other than 0, or None for one worker, or "
            "for as many as joblib.parallel_config says"
        )


def counts(values: Any, *, name: str) -> tuple[int, ...]:
    """Return ``values`` as a tuple of integers of at least 1.

    Raises:
        InvalidParameter: no list, or an entry that is no such integer.

    Example:
        >>> counts([8, 4], name="hidden")
        (8, 4)
    """
    if not isinstance(values, (list, tuple, range)):
        raise InvalidParameter(f"{name}={shown(values)}: expected a list of integers of at least 1")
    return tuple(count(value, name=name) for value in values)


def real(value: Any, *, name: str) -> float:
    """Return ``value`` as a float, infinite and NaN ones included.

    Raises:
        InvalidParameter: not a number, or an integer beyond the largest double.
    """
    if type(value) is float:  # asking an abstract class takes longer
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidParameter(f"{name}={shown(value)}: expected a number")
    try:
        return float(value)
    except OverflowError:
        raise InvalidParameter(f"{name}: expected a number below 1.8e308") from None


def words(value: Any, *, name: str, minimum: int = 1, most: int = 200) -> str:
    """Return ``value`` unchanged if it is text of ``minimum`` to ``most`` printable characters.

    Raises:
        InvalidParameter: no such text.

    Example:
        >>> words("ward 7", name="data_set")
        'ward 7'
    """
    if not isinstance(value, str) or not minimum <= len(value) <= most or not value.isprintable():
        shown = type(value).__name__ if not isinstance(value, str) else f"{len(value)} characters"
        raise InvalidParameter(
            f"{name}: expected {minimum} to {most} printable characters, got {shown}"
        )
    return value


def one_each(values: Any, rows: int, *, name: str) -> list[Any]:
    """Return ``values`` as a list of one entry for each of ``rows`` records.

    Raises:
        InvalidInput: no list, or one of another length. Entries are never shown.

    Example:
        >>> one_each(("anna", 7), 2, name="keys")
        ['anna', 7]
    """
    try:
        found = None if isinstance(values, (str, bytes)) else list(values)
    except MemoryError:
        raise
    except Exception:
        found = None
    if found is None:
        raise InvalidInput(f"{name}: expected one per record, got {type(values).__name__}")
    if len(found) != rows:
        raise InvalidInput(f"{name}: expected one per record, got {len(found)} for {rows} records")
    return found


def one_of(value: Any, known: Iterable[str], *, name: str) -> str:
    """Return ``value`` if it is one of the known names.

    Raises:
        UnknownName: it is another, or no text.

    Example:
        >>> one_of("linear", ("linear", "log"), name="scale")
        'linear'
    """
    names = tuple(known)
    if not isinstance(value, str) or value not in names:
        raise UnknownName(f"{name}={shown(value)}: expected one of {', '.join(names)}")
    return value


def flag(value: Any, *, name: str) -> bool:
    """Return ``value`` as a truth value.

    Raises:
        InvalidParameter: neither true, false nor an integer.
    """
    import numpy as np

    if not isinstance(value, (bool, np.bool_, numbers.Integral)):
        raise InvalidParameter(f"{name}={shown(value)}: expected True or False")
    return bool(value)


def shown(value: Any) -> str:
    """Return ``value`` for a message: its ``repr``, cut to 60 characters, or its type if it has
    none.

    Example:
        >>> shown("much"), shown(-(10**5000))
        ("'much'", '<int that cannot be written>')
    """
    try:
        text = repr(value)
    except Exception:
        # Python writes no integers of more than 4300 digits, and a repr of somebody's own may raise
        # anything.
        return f"<{type(value).__name__} that cannot be written>"
    return text if len(text) <= 60 else f"{text[:57]}..."
