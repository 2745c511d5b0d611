"""What was spent can be recomputed by somebody who has an export and signed anchors, and nothing
else; and whatever is changed in them is found.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from tests.service.auditor import Refuted, audit
from tests.service.conftest import RECORDS, ROWS, Place, ask


def history(client: httpx.Client, place: Place, folder: Path) -> tuple[list[str], list[Any], Any]:
    """A service in use: an export, the anchors that somebody kept meanwhile, the public key."""
    anchors = []
    for number in range(6):
        patient = {} if number % 2 else {"subjects": ["patient-1", f"patient-{number}"]}
        bundle = "curated" if patient else "labels"
        told = ask(client, f"request-{number}", {"rows": ROWS, **patient}, bundle=bundle)
        assert told.status_code == 200, told.text
        anchors.append(client.get("/v1/anchor").json())
    ledger = place.open()
    ledger.export(folder / "export.jsonl", format="jsonl", overwrite=True)
    ledger.close()
    key = load_pem_public_key(place.public_key.read_bytes())
    assert isinstance(key, Ed25519PublicKey)
    return (folder / "export.jsonl").read_text().splitlines(), anchors, key


def test_the_auditor_finds_what_was_spent_and_what_was_changed(
    client: httpx.Client, place: Place, tmp_path: Path
) -> None:
    lines, anchors, key = history(client, place, tmp_path)
    found = audit(lines, anchors, key)
    for subject in (RECORDS, "patient-0", "patient-1", "patient-2", "patient-4", "patient-5"):
        assert found[subject].epsilon == place.spent(subject), subject
        assert not found[subject].open
    assert found["patient-1"].answers == 3
    assert found[RECORDS].answers == 6
    charge = next(at for at, line in enumerate(lines) if '"reserve"' in line)
    smaller = json.loads(lines[charge])
    smaller["epsilon"] -= 1
    forged = json.loads(json.dumps(anchors[-1]))
    forged["anchor"]["epsilon"] += 1
    faults: list[tuple[list[str], list[Any]]] = [
        ([*lines[:charge], json.dumps(smaller), *lines[charge + 1 :]], anchors),
        (lines[:charge] + lines[charge + 1 :], anchors),
        (lines[:-1], anchors),
        ([*lines[:-1], lines[-2]], anchors),
        (lines, [forged]),
    ]
    for changed, kept in faults:
        with pytest.raises(Refuted):
            audit(changed, kept, key)
