from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reticent.core.errors import InvalidInput, NotAuthenticated
from reticent.ledger import Ledger
from reticent.service.keys import KeyStore


def test_a_key_is_made_listed_and_revoked(
    command: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RETICENT_LEDGER", str(tmp_path / "ledger.db"))
    ledger = Ledger.create(tmp_path / "ledger.db", synchronous="NORMAL")
    granted = ("--bundle", "labels", "--subject", "ward-7/*", "--subject", "ward-8")
    secret = command("keys", "create", "--principal", "acme", *granted, "--days", "30").out.strip()
    found = KeyStore(ledger).find(secret)
    assert (found.principal, found.bundles) == ("acme", ("labels",))
    assert found.subjects == ("ward-7/*", "ward-8")
    assert found.expires == pytest.approx(found.created + 30 * 86400, abs=1)
    told = command("keys", "list").out
    for part in (found.id, "acme", "client", "labels", "ward-7/*, ward-8", "valid"):
        assert part in told
    assert secret not in told
    assert "revoked" in command("keys", "revoke", found.id).out
    with pytest.raises(NotAuthenticated):
        KeyStore(ledger).find(secret)
    made = json.loads(
        command("keys", "create", "--principal", "owner", "--role", "owner", "--json").out
    )
    assert KeyStore(ledger).find(made["key"]).role == "owner"
    shown = json.loads(command("keys", "list", "--json").out)
    assert [key["state"] for key in shown] == ["revoked", "valid"]
    for days in ("nan", "inf", "1e300", "-1"):
        refused = command("keys", "create", "--principal", "acme", *granted, "--days", days)
        assert refused.status == InvalidInput.code
    assert len(KeyStore(ledger).list()) == 2
    ledger.close()
