"""Independent tasks shared among joblib's workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs

from reticent.core.checks import check_jobs

Call = tuple[Any, ...]
"""A function of a module, and its arguments."""


def workers_of(n_jobs: int | None) -> int:
    """Return the number of workers that ``results_of`` shares calls among."""
    check_jobs(n_jobs)
    return int(effective_n_jobs(n_jobs))


def results_of(calls: Iterable[Call], *, n_jobs: int | None) -> Iterator[Any]:
    """Return an iterator of the calls' results in order, each as soon as it and those before it are
    there.

    Workers share memory unless ``joblib.parallel_config`` names processes or a cluster. Then
    arguments are sent to them, and never put into files, since they may be private.

    Args:
        calls: functions with their arguments, whose results depend on nothing else.
        n_jobs: number of workers as in ``joblib.Parallel``, or None for one worker or the workers
            of ``joblib.parallel_config``.

    Raises:
        InvalidParameter: ``n_jobs`` is neither None nor a whole number other than 0.

    Example:
        >>> list(results_of([(pow, 2, 3), (pow, 3, 2)], n_jobs=2))
        [8, 9]
    """
    if workers_of(n_jobs) == 1:
        return (function(*arguments) for function, *arguments in calls)
    settings = {"n_jobs": n_jobs, "prefer": "threads", "max_nbytes": None}
    try:
        workers = Parallel(**settings, return_as="generator")
    except ValueError:  # joblib's refusal where a backend, multiprocessing, returns lists alone
        workers = Parallel(**settings)
    found: Iterable[Any] = workers(delayed(function)(*arguments) for function, *arguments in calls)
    return iter(found)
