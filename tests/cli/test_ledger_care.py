from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reticent.accounting import PrivacyEvent
from reticent.core import AddRemove, Guarantee, Receipt, Scope
from reticent.core.errors import CorruptLedger, InvalidInput, LedgerUnavailable
from reticent.ledger import Ledger
from tests.ledger.conftest import path, receipt_for

__all__ = ["path"]

EVENT = PrivacyEvent("test", Guarantee(0.1, 0.0, AddRemove()))
WARD = Scope(subject="ward-7")
Command = Callable[..., Any]


def receipt_of(path: Path, answers: int) -> Receipt:
    ledger = Ledger.open(path, synchronous="NORMAL")
    reservation = ledger.reserve(WARD, EVENT, answers=answers)
    receipt = receipt_for(reservation, EVENT.guarantee, answers)
    reservation.commit(receipt.identifier)
    ledger.close()
    return receipt


def test_a_rollback_is_said_and_accepted(command: Command, path: Path, tmp_path: Path) -> None:
    shutil.copy(path, tmp_path / "old")
    receipt = receipt_of(path, 4)
    (tmp_path / "receipt.json").write_text(json.dumps(receipt.to_dict()))
    content = np.frombuffer(json.dumps(receipt.to_dict()).encode(), dtype=np.uint8)
    np.savez(tmp_path / "answers.npz", values=np.zeros(4), receipt=content)
    receipts = ("--receipt", tmp_path / "receipt.json", "--receipt", tmp_path / "answers.npz")
    assert command("ledger", "verify", "--ledger", path, *receipts)[0] == 0
    shutil.copy(tmp_path / "old", path)
    status, _, error = command("ledger", "report", "--ledger", path)
    assert status == LedgerUnavailable.code
    assert "go on with this one by `reticent ledger accept-rollback`" in error
    status, _, error = command("ledger", "verify", "--ledger", path, *receipts)
    assert status == CorruptLedger.code
    assert "the anchor names entry 2" in error
    assert f"receipt {receipt.identifier} names entry 2, which is not here" in error
    status, _, error = command("ledger", "accept-rollback", "--ledger", path)
    assert status == InvalidInput.code
    assert "expected --charge-lost or --forget-lost" in error
    status, out, _ = command("ledger", "accept-rollback", "--ledger", path, "--charge-lost")
    assert status == 0
    assert "every budget is charged epsilon=0.4, delta=0" in out
    status, _, error = command("ledger", "accept-rollback", "--ledger", path, "--forget-lost")
    assert status == InvalidInput.code
    assert "there is nothing to accept" in error
    assert "subject=ward-7" in command("ledger", "report", "--ledger", path)[1]
    assert "which is not here" in command("ledger", "verify", "--ledger", path, *receipts)[2]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b"PK\x03\x04",
        b'{"booked": ""}',
        b'{"booked": "1a2b3c4d/7", "position": 6}',
    ],
)
def test_what_is_no_receipt_is_refused(
    command: Command, path: Path, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "receipt").write_bytes(content)
    status, _, error = command(
        "ledger", "verify", "--ledger", path, "--receipt", tmp_path / "receipt"
    )
    assert status == InvalidInput.code
    assert "receipt" in error
    assert (
        command("ledger", "verify", "--ledger", path, "--receipt", tmp_path / "missing")[0]
        == InvalidInput.code
    )
