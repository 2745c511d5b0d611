"""Means and standard errors over runs that differ in their seed alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

Results = dict[str, Any]


def combined(runs: Sequence[Results]) -> tuple[Results, Results]:
    """Results of one shape as their means, and the standard errors of those; the latter are NaN for
    one run.

    Numbers and lists of numbers are averaged entry by entry; of words, all that occur are kept,
    joined by " or "; a key that a run lacks is averaged over the others.

    Example:
        >>> means, errors = combined(
        ...     [{"a": 1.0, "mechanism": "code"}, {"a": 3.0, "mechanism": "code"}]
        ... )
        >>> means, errors["a"]
        ({'a': 2.0, 'mechanism': 'code'}, 1.0)
    """
    means: Results = {}
    errors: Results = {}
    for key in dict.fromkeys(key for run in runs for key in run):
        values = [run[key] for run in runs if key in run]
        if isinstance(values[0], dict):
            means[key], errors[key] = combined(values)
        elif isinstance(values[0], str):
            means[key], errors[key] = " or ".join(dict.fromkeys(values)), ""
        else:
            table = np.asarray(values, dtype=np.float64)
            spread = (
                table.std(axis=0, ddof=1) / math.sqrt(len(values))
                if len(values) > 1
                else np.full(table.shape[1:], np.nan)
            )
            means[key], errors[key] = table.mean(axis=0).tolist(), np.asarray(spread).tolist()
    return means, errors


def with_error(mean: float, error: float, *, digits: int = 3, sign: str = "") -> str:
    """A mean with its standard error, which is left out where one run has none.

    Args:
        mean, error: of ``combined``.
        digits: behind the point.
        sign: "+" to show that of the mean in any case.

    Example:
        >>> with_error(0.5, 0.012), with_error(0.5, math.nan, digits=1, sign="+")
        ('0.500 ± 0.012', '+0.5')
    """
    shown = format(mean, f"{sign}.{digits}f")
    return shown if math.isnan(error) else f"{shown} ± {error:.{digits}f}"
