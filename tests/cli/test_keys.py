from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from reticent.cli.service import keys_app
from reticent.core.errors import NotAuthenticated
from reticent.ledger import Ledger
from reticent.service.keys import KeyStore

Run = Callable[..., str]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs a command line on a new ledger, and returns what it printed; errors pass through."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("RETICENT_LEDGER", str(tmp_path / "ledger.db"))

    def run(*arguments: str) -> str:
        capsys.readouterr()
        keys_app(args=list(arguments), prog_name="reticent keys", standalone_mode=False)
        return capsys.readouterr().out

    return run


def test_a_key_is_made_listed_and_revoked(run: Run, tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db", synchronous="NORMAL")
    granted = ("--bundle", "labels", "--subject", "ward-7/*", "--subject", "ward-8")
    secret = run("create", "--principal", "acme", *granted, "--days", "30").strip()
    found = KeyStore(ledger).find(secret)
    assert (found.principal, found.bundles) == ("acme", ("labels",))
    assert found.subjects == ("ward-7/*", "ward-8")
    assert found.expires == pytest.approx(found.created + 30 * 86400, abs=1)
    told = run("list")
    for part in (found.id, "acme", "client", "labels", "ward-7/*, ward-8", "valid"):
        assert part in told
    assert secret not in told
    assert "revoked" in run("revoke", found.id)
    with pytest.raises(NotAuthenticated):
        KeyStore(ledger).find(secret)
    made = json.loads(run("create", "--principal", "owner", "--role", "owner", "--json"))
    assert KeyStore(ledger).find(made["key"]).role == "owner"
    shown = json.loads(run("list", "--json"))
    assert [key["state"] for key in shown] == ["revoked", "valid"]
    ledger.close()
