"""`reticent service prune`: what it says, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reticent.cli.main import run
from reticent.ledger import Ledger


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("RETICENT_ANCHOR", str(tmp_path / "anchors"))
    (tmp_path / "data").mkdir()
    Ledger.create(tmp_path / "data" / "ledger.db", synchronous="NORMAL").close()
    return str(tmp_path / "data" / "ledger.db")


def test_it_says_what_is_gone(ledger: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["service", "prune", "--ledger", ledger, "--older-than", "30d"]) == 0
    assert capsys.readouterr().out == "0 answers of 0 bytes removed\n"
    assert run(["service", "prune", "--ledger", ledger, "--older-than", "1h", "--dry-run"]) == 0
    assert "would be removed" in capsys.readouterr().out
    assert run(["service", "prune", "--ledger", ledger, "--older-than", "8w", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {"answers": 0, "size": 0, "dry_run": False}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--older-than", "30"], 2),
        (["--older-than", "0h"], 2),
        ([], 2),
        (["--older-than", "30d", "--ledger", "nothing.db"], 13),
    ],
)
def test_what_is_wrong_is_said(
    ledger: str,
    arguments: list[str],
    code: int,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    given = arguments if "--ledger" in arguments else [*arguments, "--ledger", ledger]
    assert run(["service", "prune", *given]) == code
    assert capsys.readouterr().err
