"""Types of arrays in signatures, and arrays by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]
Arrays = dict[str, npt.NDArray[Any]]
"""Arrays by name, in the form that a bundle stores."""


def under(prefix: str, arrays: Arrays) -> Arrays:
    """Return the same arrays, ``prefix`` before every name."""
    return {f"{prefix}{name}": array for name, array in arrays.items()}


def part_of(arrays: Arrays, prefix: str) -> Arrays:
    """Return the arrays whose names begin with ``prefix``, named without it.

    Example:
        >>> list(part_of(under("map.", {"center": np.zeros(1)}), "map."))
        ['center']
    """
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }
