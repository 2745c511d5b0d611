"""The commands of the page for operators, run as they stand there."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from reticent.accounting import PrivacyEvent
from reticent.cli.main import run
from reticent.core import AddRemove, Guarantee, Scope
from reticent.core.errors import BudgetExceeded, UntrustedSignature
from reticent.core.signatures import verify, write_key_pair
from reticent.core.strict_json import strict_dumps
from reticent.ledger import Ledger
from reticent.service.core import Service
from reticent.service.settings import Settings
from reticent.service.signing import Signer
from tests.ledger.conftest import _postgres_programs
from tests.service.conftest import RECORDS

PAGE = Path(__file__).parents[2] / "docs" / "operate.md"
COST = PrivacyEvent("test", Guarantee(0.5, 0.0, AddRemove(1, data_set=RECORDS)))
SCOPE = Scope(subject=RECORDS)


def blocks(heading: str) -> list[list[str]]:
    """The commands under a heading, block by block."""
    _, _, rest = PAGE.read_text().partition(f"\n## {heading}\n")
    found = re.findall(r"^```sh.*\n((?:.*\n)*?)```$", rest.partition("\n## ")[0], re.MULTILINE)
    assert found, heading
    return [block.splitlines() for block in found]


def follow(commands: list[str]) -> None:
    """Runs them here; those of this package without another Python."""
    for command in commands:
        if command.startswith("reticent "):
            assert run(shlex.split(os.path.expandvars(command))[1:]) == 0, command
        else:
            subprocess.run(["bash", "-ec", command], check=True, capture_output=True)


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, served_bundles: Path) -> Path:
    """What the page assumes: a bundle, and a signing key."""
    home = tmp_path / "home"
    (home / "bundles").mkdir(parents=True)
    (tmp_path / "anchors").mkdir()
    shutil.copytree(served_bundles / "labels", home / "bundles" / "ward-7")
    write_key_pair(home / "key.pem")
    monkeypatch.chdir(home)
    monkeypatch.setenv("RETICENT_ANCHOR", str(tmp_path / "anchors"))
    programs = _postgres_programs()
    if programs is not None:
        monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    return home


def made(url: str) -> None:
    """A ledger with a budget of 10, of which one answer is spent."""
    ledger = Ledger.create(url, synchronous="NORMAL")
    ledger.grant(SCOPE, Guarantee(10.0, 0.0, AddRemove(1, data_set=RECORDS)))
    ledger.close()
    spend(url)


def spend(url: str) -> None:
    ledger = Ledger.open(url, synchronous="NORMAL")
    ledger.reserve(SCOPE, COST, answers=1)
    ledger.close()


def spent(url: str) -> float:
    ledger = Ledger.open(url, synchronous="NORMAL")
    try:
        (budget,) = ledger.report().budgets
        return budget.spent_epsilon / 1e6
    finally:
        ledger.close()


def test_a_backup_on_sqlite_comes_back_with_what_was_spent_since() -> None:
    made("budgets.db")
    (before,) = blocks("Upgrade")
    follow(before)
    save, restore = blocks("Backup and restore on SQLite")
    follow(save)
    spend("budgets.db")
    assert run(["ledger", "restore", "--ledger", "budgets.db", "--from", "backup.db"]) != 0
    follow(restore)
    assert spent("budgets.db") == 1.0


@pytest.mark.postgres
def test_a_dump_of_postgres_comes_back_with_what_was_spent_since(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if shutil.which("pg_dump") is None or shutil.which("pg_restore") is None:
        pytest.skip("no pg_dump here: install Debian's package postgresql-client")
    url = f"{postgres_url}&anchor={tmp_path / 'anchors'}"
    monkeypatch.setenv("LEDGER", url)
    monkeypatch.setenv("DATABASE", postgres_url.replace("+psycopg", ""))
    made(url)
    save, restore = blocks("Backup and restore on PostgreSQL")
    follow(save)
    spend(url)
    follow(restore[:1])
    assert run(["ledger", "report", "--ledger", url]) != 0  # older than its anchor
    follow(restore[1:])
    assert spent(url) == 1.0


def test_a_signing_key_is_rotated_by_a_set_of_trusted_keys(place: Path) -> None:
    make, change = blocks("Rotate the signing key")
    old = Signer("key.pem").receipt({"answers": 1})
    follow(make)
    assert run(["verify", "bundles/ward-7", "--trusted-key", "trusted.pem"]) != 0
    follow(change)
    new = Signer("key-2.pem").receipt({"answers": 1})
    content = strict_dumps({"answers": 1})
    for signature in (old, new):
        verify(content, strict_dumps(signature), purpose="receipt", trusted_key="trusted.pem")
    with pytest.raises(UntrustedSignature):
        verify(content, strict_dumps(old), purpose="receipt", trusted_key="key-2.pub.pem")
    made("budgets.db")
    serves = Settings(
        bundles=place / "bundles",
        ledger="budgets.db",
        signing_key=place / "key-2.pem",
        trusted_key=place / "trusted.pem",
    )
    Service(serves).close()


def test_a_budget_is_lowered_and_then_frozen(capsys: pytest.CaptureFixture[str]) -> None:
    """One of which nothing was spent is lowered to nothing, and reported."""
    made("budgets.db")
    (commands,) = blocks("Lower or freeze a budget")
    for command, left in zip(commands, (4.5, 0.0), strict=True):
        follow([command.replace("ward 7, 2024", RECORDS)])
        ledger = Ledger.open("budgets.db", synchronous="NORMAL")
        (budget,) = ledger.report().budgets
        assert budget.left_epsilon / 1e6 == left
        ledger.close()
    with pytest.raises(BudgetExceeded):
        spend("budgets.db")
    ledger = Ledger.open("budgets.db")
    ledger.grant(Scope(subject="unused"), Guarantee(2.0, 0.0, AddRemove()))
    ledger.close()
    for command in ("lower --subject unused", "report", "report --json", "verify"):
        capsys.readouterr()
        assert run(["ledger", *command.split(), "--ledger", "budgets.db"]) == 0
        if "json" in command:
            granted = {b["granted_epsilon"] for b in json.loads(capsys.readouterr().out)["budgets"]}
            assert granted == {0, 500_000}
