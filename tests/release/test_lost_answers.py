"""First answers of eight threads at once: what is paid for arrives."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from reticent.core import Guarantee, Scope
from reticent.ledger import Ledger
from reticent.systems import (
    LinearVoteClassifier,
)

THREADS = 8
SCOPE = Scope(subject="ward")
ROWS = np.random.default_rng(0).normal(size=(12, 2))
LABELS = np.arange(12) % 2
PUBLIC = np.random.default_rng(1).normal(size=(30, 2))
SYSTEM = LinearVoteClassifier(
    epsilon=1.0, delta=1e-5, classes=(0, 1), data_set="ward", answers=THREADS
)
"""Stands for all whose answers are prepaid: they share what counts them."""


def lost(ledger: Ledger, rounds: int) -> int:
    """How many of ``rounds`` times eight first calls failed; all of each are made at once."""
    failed = 0
    with ThreadPoolExecutor(THREADS) as threads:
        for _ in range(rounds):
            fitted, start = clone(SYSTEM).fit(ROWS, LABELS, public_X=PUBLIC), Barrier(THREADS)

            def ask(fitted: Any = fitted, start: Barrier = start) -> int:
                start.wait(timeout=60)
                return len(fitted.release(ROWS[:1], ledger=ledger, scope=SCOPE))

            waiting = [threads.submit(ask) for _ in range(THREADS)]
            failed += sum(one.exception() is not None for one in waiting)
    return failed


@pytest.mark.parametrize("rounds", [3, pytest.param(1250, marks=pytest.mark.soak)])
def test_no_paid_answer_is_lost(rounds: int, tmp_path: Path) -> None:
    cost = clone(SYSTEM).fit(ROWS, LABELS, public_X=PUBLIC).guarantee
    with closing(Ledger.create(tmp_path / "ledger.db", synchronous="NORMAL")) as ledger:
        total = Guarantee(
            cost.epsilon * (rounds + 1), min(0.5, cost.delta * (rounds + 1)), cost.adjacency
        )
        ledger.grant(SCOPE, total)
        assert lost(ledger, rounds) == 0
        [account] = ledger.report().accounts
        assert account.spent_epsilon == pytest.approx(1e6 * rounds * cost.epsilon, abs=rounds)
        assert ledger.verify().ok
