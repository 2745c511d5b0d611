from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reticent.accounting import PrivacyEvent
from reticent.cli.ledger import ledger_app
from reticent.core import AddRemove, Guarantee, Scope
from reticent.core.errors import (
    BudgetExceeded,
    CorruptLedger,
    IncompatibleGuarantees,
    InvalidInput,
    ReticentError,
)
from reticent.ledger import Ledger

Run = Callable[..., str]
EVENT = PrivacyEvent("test", Guarantee(0.1, 1e-9, AddRemove()))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command line and returns what it printed; errors pass through."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> str:
        capsys.readouterr()
        ledger_app(args=list(arguments), prog_name="reticent ledger", standalone_mode=False)
        return capsys.readouterr().out

    return run


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A ledger with one budget, of which half is spent by two clients."""
    ledger = Ledger.create(tmp_path / "ledger.db", synchronous="NORMAL")
    ledger.grant(Scope(subject="ward-7"), Guarantee(1.0, 1e-6, AddRemove()))
    ledger.reserve(Scope("acme", "ward-7"), EVENT, answers=3).commit("r1")
    ledger.reserve(Scope("bolt", "ward-7"), EVENT, answers=2)
    ledger.close()
    return str(tmp_path / "ledger.db")


def test_init_grant_report(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETICENT_LEDGER", str(tmp_path / "new.db"))
    assert "0 entries, 0 budgets" in run("init")
    near = "within:linf:0.5::8-dimensional embedding"
    granted = run(
        *("grant", "--subject", "s", "--epsilon", "2", "--delta", "1e-5", "--neighbours", near)
    )
    assert "left epsilon=2, delta=1e-05" in granted
    assert "1 entries, 1 budgets" in run("init")
    assert "linf distance 0.5" in run("report")


def test_preview_says_what_would_fit(run: Run, path: str) -> None:
    common = (
        "preview",
        "--ledger",
        path,
        "--subject",
        "ward-7",
        "--epsilon",
        "0.1",
        "--delta",
        "0",
        "--neighbours",
        "add-remove",
    )
    assert "would be answered; at most 5 answer(s) fit now" in run(*common, "--answers", "5")
    assert (
        ledger_app(args=[*common, "--answers", "6"], standalone_mode=False) == BudgetExceeded.code
    )
    assert Ledger.open(path).report().entries == 4


def test_verify_of_a_changed_ledger_has_its_own_exit_status(
    command: Callable[..., Any], path: str
) -> None:
    assert command("ledger", "verify", "--ledger", path).status == 0
    with Ledger.open(path).store.write() as connection:
        connection.exec_driver_sql("UPDATE accounts SET spent_epsilon = 0")
    answer = command("ledger", "verify", "--ledger", path)
    assert answer.status == CorruptLedger.code == 17
    assert "account principal=acme, subject=ward-7" in answer.err
    assert "reticent ledger restore" in answer.err


GRANT = ("--epsilon", "1", "--delta", "0", "--neighbours")
NONE = ("--epsilon", "-1", "--delta", "0")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("grant", *GRANT, "replace"), InvalidInput, "principal"),
        (("grant", "--subject", "ward-7", *GRANT, "replace"), IncompatibleGuarantees, "adjacency"),
        (("grant", "--subject", "s", *NONE, "--neighbours", "replace"), InvalidInput, "epsilon"),
        (("report", "--limit", "0"), InvalidInput, "limit=0"),
        (("verify", "--anchor", "nonsense"), InvalidInput, "anchor='nonsense'"),
        (("export", "--output", "entries.xlsx"), InvalidInput, r"\.jsonl"),
        (("report", "--output", "figure.xlsx"), InvalidInput, r"\.png"),
        (("export", "--output", "/no/such/folder/file.csv"), ReticentError, "folder"),
        (("preview", "--subject", "t", *GRANT, "add-remove"), BudgetExceeded, "subject=t"),
    ],
)
def test_wrong_arguments_spend_nothing(
    run: Run, path: str, arguments: tuple[str, ...], error: type[ReticentError], message: str
) -> None:
    before = run("verify", "--ledger", path)
    with pytest.raises(error, match=message):
        run(arguments[0], "--ledger", path, *arguments[1:])
    assert run("verify", "--ledger", path) == before
