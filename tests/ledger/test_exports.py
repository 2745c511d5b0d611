from __future__ import annotations

import csv
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from reticent.accounting import PrivacyEvent
from reticent.core import AddRemove, Guarantee, Scope
from reticent.core.errors import CorruptLedger, InvalidInput, UnknownName, WriteFailed
from reticent.ledger import Ledger, check_export
from reticent.ledger.reports import COLUMNS

EventMaker = Callable[..., PrivacyEvent]


@pytest.fixture
def filled(ledger: Ledger, scope: Scope, make_event: EventMaker) -> Ledger:
    ledger.grant(scope, Guarantee(1.0, 1e-6, AddRemove()))
    for number in range(3):
        ledger.reserve(scope, make_event(), answers=1).commit(f'receipt "{number}", ü')
    return ledger


def test_json_lines_hold_every_entry_and_prove_themselves(filled: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "entries.jsonl"
    assert filled.export(path, format="jsonl", overwrite=False) == 7
    lines = path.read_text().splitlines()
    assert [json.loads(line)["action"] for line in lines] == ["grant", *["reserve", "commit"] * 3]
    assert json.loads(lines[2])["receipt"] == 'receipt "0", ü'
    assert check_export(lines) == 7
    for wrong in (
        lines[:2] + lines[3:],
        [lines[0], lines[2], lines[1], *lines[3:]],
        [*lines[:3], lines[3].replace("100000", "1")],
    ):
        with pytest.raises(CorruptLedger):
            check_export(wrong)
    with pytest.raises(InvalidInput, match="line 2"):
        check_export([lines[0], "{}"])


def test_csv_says_the_same(filled: Ledger, tmp_path: Path) -> None:
    filled.export(tmp_path / "entries.csv", format="csv", overwrite=False)
    filled.export(tmp_path / "entries.jsonl", format="jsonl", overwrite=False)
    with (tmp_path / "entries.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert tuple(rows[0]) == COLUMNS
    expected = [json.loads(line) for line in (tmp_path / "entries.jsonl").read_text().splitlines()]
    assert rows == [{name: str(value) for name, value in row.items()} for row in expected]


def test_files_are_whole_or_not_there(filled: Ledger, tmp_path: Path) -> None:
    with pytest.raises(WriteFailed, match="folder"):
        filled.export(tmp_path / "no" / "such.csv", format="csv", overwrite=False)
    with pytest.raises(UnknownName, match="format='xml'"):
        filled.export(tmp_path / "entries.xml", format="xml", overwrite=False)  # type: ignore[arg-type]
    (tmp_path / "there.csv").write_text("precious")
    with pytest.raises(InvalidInput, match="exists already"):
        filled.export(tmp_path / "there.csv", format="csv", overwrite=False)
    assert {file.name for file in tmp_path.iterdir()} - {
        "ledger.db",
        "ledger.db-wal",
        "ledger.db-shm",
    } == {"there.csv"}
    filled.export(tmp_path / "there.csv", format="csv", overwrite=True)
    assert "precious" not in (tmp_path / "there.csv").read_text()


def test_an_export_follows_the_umask_and_replaces_no_device(filled: Ledger, tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        filled.export(tmp_path / "entries.jsonl", format="jsonl", overwrite=False)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "entries.jsonl").stat().st_mode) == 0o600
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInput, match="is a device, pipe or socket"):
        filled.export(tmp_path / "pipe", format="jsonl", overwrite=True)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
