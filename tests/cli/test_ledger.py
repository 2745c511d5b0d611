from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reticent.accounting import PrivacyEvent
from reticent.core import AddRemove, Guarantee, Scope
from reticent.core.errors import (
    BudgetExceeded,
    CorruptLedger,
    IncompatibleGuarantees,
    InvalidInput,
    InvalidParameter,
    ReticentError,
    WriteFailed,
)
from reticent.ledger import Ledger

Command = Callable[..., Any]
EVENT = PrivacyEvent("test", Guarantee(0.1, 1e-9, AddRemove()))


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A ledger with one budget, of which half is spent by two clients."""
    ledger = Ledger.create(tmp_path / "ledger.db", synchronous="NORMAL")
    ledger.grant(Scope(subject="ward-7"), Guarantee(1.0, 1e-6, AddRemove()))
    ledger.reserve(Scope("acme", "ward-7"), EVENT, answers=3).commit("r1")
    ledger.reserve(Scope("bolt", "ward-7"), EVENT, answers=2)
    ledger.close()
    return str(tmp_path / "ledger.db")


def test_init_grant_report(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RETICENT_LEDGER", str(tmp_path / "new.db"))
    assert "0 entries, 0 budgets" in command("ledger", "init").out
    near = "within:linf:0.5::8-dimensional embedding"
    amount = ("--epsilon", "2", "--delta", "1e-5", "--neighbours", near)
    granted = command("ledger", "grant", "--subject", "s", *amount)
    assert "left epsilon=2, delta=1e-05" in granted.out
    assert "1 entries, 1 budgets" in command("ledger", "init").out
    assert "linf distance 0.5" in command("ledger", "report").out


def test_preview_says_what_would_fit(command: Command, path: str) -> None:
    common = (
        *("ledger", "preview", "--ledger", path, "--subject", "ward-7"),
        *("--epsilon", "0.1", "--delta", "0", "--neighbours", "add-remove"),
    )
    told = command(*common, "--answers", "5")
    assert "would be answered; at most 5 answer(s) fit now" in told.out
    assert command(*common, "--answers", "6").status == BudgetExceeded.code
    assert Ledger.open(path).report().entries == 4


def test_verify_of_a_changed_ledger_has_its_own_exit_status(command: Command, path: str) -> None:
    assert command("ledger", "verify", "--ledger", path).status == 0
    with Ledger.open(path).store.write() as connection:
        connection.exec_driver_sql("UPDATE accounts SET spent_epsilon = 0")
    answer = command("ledger", "verify", "--ledger", path)
    assert answer.status == CorruptLedger.code == 17
    assert "account principal=acme, subject=ward-7" in answer.err
    assert "reticent ledger restore" in answer.err


GRANT = ("--epsilon", "1", "--delta", "0", "--neighbours")
NONE = ("--epsilon", "-1", "--delta", "0", "--neighbours", "replace")


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        (("grant", *GRANT, "replace"), InvalidInput, "principal"),
        (("grant", "--subject", "ward-7", *GRANT, "replace"), IncompatibleGuarantees, "adjacency"),
        (
            ("grant", "--subject", "s", *NONE),
            InvalidParameter,
            "epsilon",
        ),
        (("report", "--limit", "0"), InvalidParameter, "limit=0"),
        (("verify", "--anchor", "nonsense"), InvalidInput, "anchor='nonsense'"),
        (("export", "--output", "entries.xlsx"), InvalidInput, ".jsonl"),
        (("report", "--output", "figure.xlsx"), InvalidInput, ".svg"),
        (("export", "--output", "/no/such/folder/file.csv"), WriteFailed, "folder"),
        (("preview", "--subject", "t", *GRANT, "add-remove"), BudgetExceeded, "subject=t"),
    ],
)
def test_wrong_arguments_spend_nothing(
    command: Command, path: str, arguments: tuple[str, ...], error: type[ReticentError], said: str
) -> None:
    before = command("ledger", "verify", "--ledger", path).out
    answer = command("ledger", arguments[0], "--ledger", path, *arguments[1:])
    assert answer.status == error.code
    assert said in answer.err
    assert command("ledger", "verify", "--ledger", path).out == before
