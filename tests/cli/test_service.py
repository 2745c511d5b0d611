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
