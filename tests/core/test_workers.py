"""Results come in order, whoever computes them; errors and wrong numbers of workers are said."""

from __future__ import annotations

import os
import threading
from typing import Any

import joblib
import pytest

from reticent.core import workers
from reticent.core.workers import results_of


def _where(number: int) -> tuple[int, int, int]:
    return number, os.getpid(), threading.get_ident()


def _fails(_: int) -> None:
    raise ZeroDivisionError("a task of its own")


@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing"])
def test_results_are_in_order_whatever_the_backend(backend: str) -> None:
    with joblib.parallel_config(backend=backend, n_jobs=2):
        found = list(results_of(((_where, number) for number in range(7)), n_jobs=None))
    assert [number for number, _, _ in found] == list(range(7))
    elsewhere = {process for _, process, _ in found} - {os.getpid()}
    assert bool(elsewhere) == (backend != "threading")


def test_one_worker_is_this_thread_and_starts_with_the_first_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("no worker was to be started")

    monkeypatch.setattr(workers, "Parallel", fail)
    for jobs in (None, 1):
        found = results_of([(_where, 0), (_fails, 1)], n_jobs=jobs)
        assert next(found) == (0, os.getpid(), threading.get_ident())
        with pytest.raises(ZeroDivisionError):
            next(found)
