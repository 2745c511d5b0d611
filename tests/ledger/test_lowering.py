"""What is left of a budget can be taken back, and what was spent stays spent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reticent.accounting import PrivacyEvent
from reticent.cli.main import run
from reticent.core import AddRemove, Guarantee, Scope
from reticent.core.errors import BudgetExceeded, InvalidParameter, UnknownName
from reticent.ledger import Budget, Ledger

NEAR = AddRemove(1, data_set="ward")
COST = PrivacyEvent("test", Guarantee(1.0, 1e-6, NEAR))


def amounts(budget: Budget) -> tuple[float, float, float, float]:
    units = (budget.granted_epsilon, budget.spent_epsilon)
    deltas = (budget.granted_delta, budget.spent_delta)
    return (*(one / 1e6 for one in units), *(one / 1e6 for one in deltas))


@pytest.fixture
def granted(ledger: Ledger, scope: Scope) -> Ledger:
    """A budget of 10 and 1e-5, of which three answers are spent."""
    ledger.grant(scope, Guarantee(10.0, 1e-5, NEAR))
    ledger.reserve(scope, COST, answers=3)
    return ledger


def test_a_frozen_budget_pays_nothing_until_it_is_granted_more(
    granted: Ledger, scope: Scope
) -> None:
    assert amounts(granted.lower(scope)) == (3, 3, 3, 3)
    with pytest.raises(BudgetExceeded):
        granted.reserve(scope, COST, answers=1)
    assert granted.verify().ok
    granted.grant(scope, Guarantee(1.0, 1e-6, NEAR))
    granted.reserve(scope, COST, answers=1)
    with pytest.raises(BudgetExceeded):
        granted.reserve(scope, COST, answers=1)
    assert granted.verify().ok
    assert granted.report().entries == 5


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({"epsilon": 2.0}, (8, 3, 10, 3)),
        ({"delta": 2e-6}, (10, 3, 8, 3)),
        ({"epsilon": 2.0, "delta": 2e-6}, (8, 3, 8, 3)),
        ({"epsilon": 1e6, "delta": 0.5}, (3, 3, 3, 3)),
        ({"epsilon": 1e-9}, (9.999999, 3, 10, 3)),
    ],
)
def test_a_part_is_taken_and_never_what_was_spent(
    granted: Ledger, scope: Scope, given: dict[str, float], left: tuple[float, ...]
) -> None:
    assert amounts(granted.lower(scope, **given)) == left
    assert amounts(granted.report().budgets[0]) == left
    assert granted.verify().ok


def test_what_cannot_be_taken_writes_nothing(granted: Ledger, scope: Scope) -> None:
    with pytest.raises(UnknownName):
        granted.lower(Scope(subject="nobody"))
    for wrong in ({"epsilon": -1.0}, {"delta": 1.0}, {"epsilon": float("nan")}):
        with pytest.raises(InvalidParameter):
            granted.lower(scope, **wrong)
    assert granted.report().entries == 2


def test_nothing_granted_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RETICENT_ANCHOR", str(tmp_path / "anchors"))
    (tmp_path / "anchors").mkdir()
    book = str(tmp_path / "ledger.db")
    with_book = ["--ledger", book]
    assert run(["ledger", "init", *with_book]) == 0
    ledger = Ledger.open(book)
    ledger.grant(Scope(subject="ward"), Guarantee(2.0, 0.0, NEAR))
    ledger.close()
    assert run(["ledger", "lower", *with_book, "--subject", "ward"]) == 0
    assert run(["ledger", "report", *with_book]) == 0
    capsys.readouterr()
    assert run(["ledger", "report", *with_book, "--json"]) == 0
    (budget,) = json.loads(capsys.readouterr().out)["budgets"]
    assert (budget["granted_epsilon"], budget["left_epsilon"]) == (0, 0)
    assert run(["ledger", "verify", *with_book]) == 0
