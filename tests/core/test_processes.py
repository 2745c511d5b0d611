"""A child is not its parent, a lock is each process's own, and results come in order."""

from __future__ import annotations

import copy
import os
import pickle
import threading
from typing import Any
from unittest import mock

import joblib
import pytest

from reticent.core import workers
from reticent.core.processes import HomeProcess
from reticent.core.turns import Turn
from reticent.core.workers import results_of
from tests.together import in_forks, in_threads


def test_a_forked_child_is_not_home() -> None:
    home = HomeProcess()
    assert in_forks(lambda: (home.is_here, HomeProcess().is_here)) == [(False, True)]
    assert home.is_here


def test_a_fork_that_calls_no_hook_is_seen_by_its_number() -> None:
    home = HomeProcess()
    with mock.patch.object(os, "getpid", return_value=os.getpid() + 1):
        assert not home.is_here


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda home: pickle.loads(pickle.dumps(home))]
)
def test_no_copy_is_home(copied) -> None:
    home = HomeProcess()
    twin = copied(home)
    assert not twin.is_here
    assert not copied(twin).is_here
    assert home.is_here


def most_within(turn: Turn, threads: int) -> int:
    """The most threads that were ever within the turn at once."""
    inside, most, start = [0], [0], threading.Barrier(threads)

    def enter() -> None:
        start.wait()
        for _ in range(20):
            with turn:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                threading.Event().wait(1e-4)
                inside[0] -= 1

    in_threads(*[enter] * threads)
    return most[0]


def test_a_forked_child_and_a_copy_start_unlocked() -> None:
    turn = Turn()
    with turn:
        assert in_forks(lambda: most_within(turn, threads=4)) == [1]
        with copy.copy(turn):
            pass


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
