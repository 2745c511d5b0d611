"""Workers answer what one process would, and no two of them draw the same noise."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import joblib
import numpy as np
import pytest

from reticent.accounting import PrivacyEvent
from reticent.core import Guarantee, Replace, Scope
from reticent.ledger import Ledger
from reticent.noise import SecureSampler, SeededSampler
from reticent.release import system as parallel
from tests.release.asking import asked

ONE = Guarantee(0.5, 0.0, Replace(1))
ROWS = np.arange(2000.0).reshape(1000, 2)


class Noisy:
    """Adds 64 random bits, and says which process it was."""

    mechanism = SimpleNamespace(name="noisy", guarantee=ONE, event=PrivacyEvent("noisy", ONE))
    certificate = "none"

    def answer(self, inputs: Any, *, sampler: Any) -> tuple[Any, Any]:
        words = sampler.words(len(inputs)) if not sampler.seeded else np.zeros(len(inputs))
        here = np.full(len(inputs), os.getpid())
        return np.c_[inputs, words.astype(float), here], inputs[:, 0] > 1000


def release(**more: Any) -> Any:
    return asked(Noisy(), ROWS, **more)


@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing"])
def test_workers_answer_every_row_once_in_order(backend: str) -> None:
    with joblib.parallel_config(backend=backend, n_jobs=2):
        found = release()
    np.testing.assert_array_equal(found.values[:, :2], ROWS)
    np.testing.assert_array_equal(found.withheld, ROWS[:, 0] > 1000)
    assert found.receipt.answers == 1000
    here = set(found.values[:, 3])
    assert len(here) <= 2
    assert (here == {os.getpid()}) == (backend == "threading")
    assert len(set(found.values[:, 2])) == 1000  # no word twice: 64 bits each


def test_a_release_draws_fresh_numbers_without_a_seed() -> None:
    drawn = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002 - a global seed reaches no release either
        found = release()
        assert not found.receipt.seeded
        drawn.append(set(found.values[:, 2]))
    assert not drawn[0] & drawn[1]


def test_few_rows_one_worker_and_seeds_stay_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("no worker was to be started")

    monkeypatch.setattr(parallel, "Parallel", fail)
    assert set(release(sampler=SecureSampler()).values[:, 3]) == {os.getpid()}
    with joblib.parallel_config(n_jobs=1):
        assert set(release(sampler=SecureSampler()).values[:, 3]) == {os.getpid()}
    monkeypatch.setattr(parallel, "_LEAST_ROWS", 600)
    with joblib.parallel_config(n_jobs=4):
        assert set(release().values[:, 3]) == {os.getpid()}
        monkeypatch.setattr(parallel, "_LEAST_ROWS", 1)
        assert set(release(sampler=SeededSampler(1)).values[:, 3]) == {os.getpid()}


def test_all_rows_are_charged_before_any_worker_starts(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db", synchronous="NORMAL")
    ledger.grant(Scope(subject="s"), Guarantee(1000.0, 0.0, Replace(1)))
    with joblib.parallel_config(n_jobs=2):
        found = release(ledger=ledger, scope=Scope(subject="s"))
    (account,) = ledger.report().accounts
    assert (account.answers, account.reservations, account.commits) == (1000, 1, 1)
    assert ledger.verify(receipts=[found.receipt]).problems == ()


def _words(out: Any) -> None:
    out.put(SecureSampler().words(64).tolist())


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_noise_of_started_processes_is_independent(how: str) -> None:
    """A sampler that was used before the start must not go on from one state in several."""
    context = multiprocessing.get_context(how)
    before = SecureSampler().words(64).tolist()
    out = context.SimpleQueue()
    workers = [context.Process(target=_words, args=(out,)) for _ in range(2)]
    for worker in workers:
        worker.start()
    drawn = [out.get() for _ in workers] + [before, SecureSampler().words(64).tolist()]
    for worker in workers:
        worker.join()
    assert len({word for words in drawn for word in words}) == 4 * 64
