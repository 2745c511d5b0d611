"""Row-wise answers by several workers: each draws its noise from the operating system itself."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed, effective_n_jobs

from reticent.noise import Sampler
from reticent.noise.release_samplers import RELEASE_SAMPLERS

Answers = tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]

_LEAST_ROWS = 256
"""Rows that a worker gets at least: fewer are answered sooner than they are sent."""


def answers_in_parallel(
    query: Any, inputs: Any, *, sampler: Sampler, n_jobs: int | None
) -> Answers:
    """One answer for each row of checked ``inputs``, in their order, computed by as many workers
    as joblib gives.

    *Independent noise.* A worker is given the kind of sampler and never a state: each of its words
    is read from the operating system, so that two workers cannot draw the same ones, however they
    were started. Seeded answers are computed here, one after the other: a seed has one order.

    Args:
        query: answers rows, each by itself.
        inputs: n rows as the query takes them.
        sampler: whose kind the workers draw from.
        n_jobs: as of ``joblib.Parallel``; None for the number of ``joblib.parallel_config``, or 1.

    Returns:
        Values and which of them are withheld, as ``query.answer`` does.
    """
    many = type(sampler) in RELEASE_SAMPLERS.values()
    parts = len(inputs) // _LEAST_ROWS if many else 1
    if parts > 1:
        parts = min(effective_n_jobs(n_jobs), parts)
    if parts <= 1:
        values, withheld = query.answer(inputs, sampler=sampler)
        return values, withheld
    ends = np.linspace(0, len(inputs), parts + 1).astype(int).tolist()
    # Rows are private: without a limit joblib would put large ones into files.
    found = Parallel(n_jobs=n_jobs, max_nbytes=None)(
        delayed(_answer)(query, _part(inputs, slice(start, stop)), type(sampler))
        for start, stop in pairwise(ends)
    )
    return (
        np.concatenate([values for values, _ in found]),
        np.concatenate([withheld for _, withheld in found]),
    )


def _answer(query: Any, inputs: Any, kind: type[Any]) -> Answers:
    values, withheld = query.answer(inputs, sampler=kind())
    return values, withheld


def together(parts: Sequence[Any]) -> Any:
    """Return checked inputs of one system, one after the other, as one."""
    first = parts[0]
    if len(parts) == 1:
        return first
    return first.together(parts) if hasattr(first, "together") else np.concatenate(parts)


def _part(inputs: Any, rows: slice) -> Any:
    return inputs.part(rows) if hasattr(inputs, "part") else inputs[rows]
