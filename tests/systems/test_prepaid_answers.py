"""Prepaid answers: what is charged, when, and who may still take any."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from reticent.accounting.events import PrivacyEvent
from reticent.core import AddRemove, Guarantee, Scope, Unit
from reticent.core.errors import BudgetExceeded, InvalidInput
from reticent.ledger import Ledger
from reticent.systems.prepaid_answers import PrepaidAnswers

ADJACENCY = AddRemove(1, Unit.RECORD, "ward 7")
SCOPE = Scope(subject="ward 7")
EVENT = PrivacyEvent("votes", Guarantee(1.0, 0.0, ADJACENCY))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(Ledger.create(tmp_path / "ledger.db")) as opened:
        opened.grant(SCOPE, Guarantee(1.5, 0.0, ADJACENCY))
        yield opened


def spent(ledger: Ledger) -> float:
    return sum(account.spent_epsilon for account in ledger.report().accounts) / 1e6


def test_all_answers_are_charged_once_with_the_first(ledger: Ledger) -> None:
    answers = PrepaidAnswers(EVENT, answers=5)
    for _ in range(2):
        answers.take(2, ledger=ledger, scope=SCOPE)
        assert spent(ledger) == pytest.approx(1.0)
        assert answers.booked
    assert answers.remaining == 1
    with pytest.raises(BudgetExceeded):
        answers.take(2, ledger=ledger, scope=SCOPE)
    with pytest.raises(BudgetExceeded):
        PrepaidAnswers(EVENT, answers=5).take(1, ledger=ledger, scope=SCOPE)


def test_more_than_there_are_is_refused_before_the_charge(ledger: Ledger) -> None:
    answers = PrepaidAnswers(EVENT, answers=5)
    with pytest.raises(BudgetExceeded):
        answers.take(6, ledger=ledger, scope=SCOPE)
    assert spent(ledger) == 0
    assert not answers.booked


def test_whether_a_ledger_counts_is_settled_by_the_first_answer(
    ledger: Ledger, tmp_path: Path
) -> None:
    answers = PrepaidAnswers(EVENT, answers=5)
    with pytest.raises(InvalidInput, match="both or neither"):
        answers.take(1, ledger=ledger, scope=None)
    answers.take(1, ledger=None, scope=None)
    with pytest.raises(InvalidInput, match="first release"):
        answers.take(1, ledger=ledger, scope=SCOPE)
    assert spent(ledger) == 0
    booked = PrepaidAnswers(EVENT, answers=5)
    booked.take(1, ledger=ledger, scope=SCOPE)
    with pytest.raises(InvalidInput, match="same ledger again"):
        booked.take(1, ledger=None, scope=None)
    with closing(Ledger.create(tmp_path / "other.db")) as other:
        other.grant(SCOPE, Guarantee(1.5, 0.0, ADJACENCY))
        with pytest.raises(InvalidInput, match="another one"):
            booked.take(1, ledger=other, scope=SCOPE)
        assert spent(other) == 0


def test_a_copy_has_what_the_ledger_says_and_nothing_without_one(ledger: Ledger) -> None:
    answers = PrepaidAnswers(EVENT, answers=5)
    before = pickle.loads(pickle.dumps(answers))
    answers.take(2, ledger=ledger, scope=SCOPE)
    after = pickle.loads(pickle.dumps(answers))
    assert (before.remaining, after.remaining) == (0, 0)
    with pytest.raises(BudgetExceeded):
        before.take(1, ledger=None, scope=None)
    with pytest.raises(BudgetExceeded):
        before.take(1, ledger=ledger, scope=SCOPE)
    after.take(3, ledger=ledger, scope=SCOPE)
    with pytest.raises(BudgetExceeded):
        answers.take(1, ledger=ledger, scope=SCOPE)
    assert spent(ledger) == pytest.approx(1.0)
