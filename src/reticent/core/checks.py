"""Checks of arrays and parameters, made before anything is computed, spent or written."""

from __future__ import annotations

import math
import numbers
from typing import TYPE_CHECKING, Any

from reticent.core.errors import InvalidInput, InvalidParameter

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]


def finite_array(
    values: Any,
    *,
    name: str,
    ndim: int | None = None,
    columns: int | None = None,
    allow_empty: bool = False,
) -> Array:
    """``values`` as a finite float64 array of the expected shape.

    Args:
        values: anything that numpy reads as real numbers.
        name: what the caller calls it; used in messages.
        ndim: required number of axes, or None.
        columns: required length of the last axis, or None.
        allow_empty: whether an array without elements is accepted.

    Raises:
        InvalidInput: not numeric, wrong shape, empty, or with NaN or infinity. Values are never shown.
    """
    import numpy as np  # here, because checks of numbers serve the command line, which starts without numpy

    if np.ma.is_masked(values):
        raise InvalidInput(f"{name}: contains masked values; expected a number in every place")
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise InvalidInput(f"{name}: expected an array of numbers, got {type(values).__name__}") from error
    if array.dtype.kind == "c":
        raise InvalidInput(f"{name}: Complex data not supported; expected real numbers, got dtype={array.dtype}")
    if array.dtype.kind == "O":
        array = _numbers(array, name)
    if array.dtype.kind not in "fiub":
        raise InvalidInput(f"{name}: expected real numbers, got dtype={array.dtype}")
    array = array.astype(np.float64)
    if ndim is not None and array.ndim != ndim:
        raise InvalidInput(f"{name}: expected {ndim} axes, got shape={array.shape}")
    if columns is not None and (array.ndim == 0 or array.shape[-1] != columns):
        raise InvalidInput(f"{name}: expected {columns} features in the last axis, got shape={array.shape}")
    if array.size == 0 and not allow_empty:
        raise InvalidInput(f"{name}: expected at least one value, got shape={array.shape}")
    bad = ~np.isfinite(array)
    if bad.any():
        kind = "NaN" if np.isnan(array).any() else "infinity"
        raise InvalidInput(f"{name}: contains {kind} ({int(bad.sum())} of {array.size} values are not finite)")
    return array


def _numbers(array: npt.NDArray[Any], name: str) -> Array:
    """An object array whose entries are all numbers, as float64."""
    try:
        return array.astype("float64")
    except (ValueError, TypeError, OverflowError):
        # The original error would show the entry; values of inputs are never shown.
        raise InvalidInput(f"{name}: expected real numbers, got entries that are not numbers, or beyond 1.8e308") from None


def positive(value: Any, *, name: str) -> float:
    """``value`` as a finite float above 0.

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
    """``value`` as a float in [0, 1), or in (0, 1) without ``allow_zero``.

    Raises:
        InvalidParameter: out of that range or not a number.
    """
    number = real(value, name=name)
    if not (0 <= number < 1) or (number == 0 and not allow_zero):
        raise InvalidParameter(f"{name}={value!r}: expected a number in {'[0' if allow_zero else '(0'}, 1)")
    return number


def count(value: Any, *, name: str, minimum: int = 1) -> int:
    """``value`` as an integer of at least ``minimum``.

    Raises:
        InvalidParameter: not an integer, or below ``minimum``.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < minimum:
        raise InvalidParameter(f"{name}={value!r}: expected an integer of at least {minimum}")
    return int(value)


def real(value: Any, *, name: str) -> float:
    """``value`` as a float, infinite and NaN ones included.

    Raises:
        InvalidParameter: not a number, or an integer beyond the largest double.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidParameter(f"{name}={value!r}: expected a number")
    try:
        return float(value)
    except OverflowError:
        raise InvalidParameter(f"{name}: expected a number below 1.8e308") from None
