"""A budget has one copy: forks, pickles and copies of a fitted classifier have none, or count
together in a ledger.
"""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reticent.core import AddRemove, Guarantee, Scope
from reticent.core.errors import BudgetExceeded, InvalidInput, InvalidParameter, LedgerUnavailable
from reticent.ledger import Ledger, Reservation
from reticent.systems import Features, Neighbours, PrivateKNNClassifier

RANDOM = np.random.default_rng(0)
X, Y = RANDOM.random((200, 4)), np.arange(200) % 2
QUERIES = 20
SETTINGS: dict[str, Any] = {
    "epsilon": 3.0,
    "delta": 1e-5,
    "queries": QUERIES,
    "neighbours": Neighbours(number=5, sampling_probability=0.5),
    "classes": [0, 1],
    "features": Features(range=(0.0, 1.0)),
    "data_set": "ward 7",
}
SCOPE = Scope(subject="records")


def fitted(**changes: Any) -> PrivateKNNClassifier:
    return PrivateKNNClassifier(**{**SETTINGS, **changes}).fit(X, Y)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger.create(tmp_path / "ledger.db", synchronous="NORMAL")
    made.grant(
        SCOPE, Guarantee(3.5, 1e-4, AddRemove(data_set="ward 7"))
    )  # room for one plan, not for two
    return made


def ask_one_by_one(classifier: PrivateKNNClassifier, where: dict[str, Any]) -> int:
    """How many single queries are answered before the plan is used up."""
    answered = 0
    try:
        while True:
            answered += len(classifier.release(X[:1], **where))
    except BudgetExceeded:
        return answered


def in_children(classifier: PrivateKNNClassifier, children: int, where: dict[str, Any]) -> int:
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    workers = [
        context.Process(target=lambda: results.put(ask_one_by_one(classifier, where)))
        for _ in range(children)
    ]
    for worker in workers:
        worker.start()
    total = sum(results.get(timeout=120) for _ in workers)
    for worker in workers:
        worker.join()
    return total


@pytest.mark.parametrize("copied", [copy.copy, lambda one: pickle.loads(pickle.dumps(one))])
def test_with_a_ledger_all_copies_and_children_count_together(copied: Any, ledger: Ledger) -> None:
    classifier, where = fitted(), {"ledger": ledger, "scope": SCOPE}
    first = classifier.release(X[:2], **where)
    twin = copied(classifier)
    second = twin.release(X[:3], **where).receipt
    assert (second.booked, second.position, second.digest) == (
        first.receipt.booked,
        first.receipt.position,
        first.receipt.digest,
    )
    assert first.receipt.position > 0
    assert len(first.receipt.digest) == 64
    by_children = in_children(classifier, 3, where)
    assert 0 < by_children <= QUERIES - 5
    assert (
        ask_one_by_one(classifier, where) + ask_one_by_one(twin, where) == QUERIES - 5 - by_children
    )
    [account] = ledger.report().accounts
    assert account.answers == 1 + QUERIES  # the plan, and its queries at no cost
    assert account.spent_epsilon == pytest.approx(1e6 * classifier.guarantee.epsilon, abs=1)
    with pytest.raises(InvalidInput):
        twin.release(X[:1])
    with pytest.raises(InvalidParameter, match="labels were released already"):
        classifier.calibrate(epsilon=3.0, delta=1e-5, queries=100)


def test_a_failed_commit_loses_its_answers_and_not_the_plan(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    classifier, where = fitted(), {"ledger": ledger, "scope": SCOPE}

    def fail(*_: object) -> None:
        raise LedgerUnavailable("the disk is full; nothing is released")

    with monkeypatch.context() as broken:
        broken.setattr(Reservation, "commit", fail)
        with pytest.raises(LedgerUnavailable):
            classifier.release(X[:2], **where)
    assert ask_one_by_one(classifier, where) == QUERIES - 2
    [account] = ledger.report().accounts
    assert account.answers == 1 + QUERIES  # the plan, and its queries at no cost
    assert account.spent_epsilon == pytest.approx(1e6 * classifier.guarantee.epsilon, abs=1)
    assert ledger.verify().ok
