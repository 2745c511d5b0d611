from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from reticent.accounting import Ledger, PrivacyEvent, Scope
from reticent.accounting.store import Store
from reticent.core import AddRemove, Guarantee
from reticent.core.errors import InvalidInput

EventMaker = Callable[..., PrivacyEvent]


@pytest.fixture
def path(tmp_path: Path, make_event: EventMaker) -> Path:
    """A ledger of three grants, eight reservations and six commits."""
    file = tmp_path / "ledger.db"
    ledger = Ledger.create(file, synchronous="NORMAL")
    for scope in (Scope(subject="s"), Scope(principal="p"), Scope(principal="p", subject="t")):
        ledger.grant(scope, Guarantee(2.0, 1e-5, AddRemove()))
    for number in range(8):
        scope = Scope(principal="p" if number % 2 else "q", subject="s")
        reservation = ledger.reserve(scope, make_event(epsilon=0.1, delta=1e-8), answers=1 + number % 2)
        if number < 6:
            reservation.commit(f"receipt {number}")
    assert ledger.verify().ok
    ledger.close()
    return file


def tamper(path: Path, *statements: str) -> None:
    """Edits the file as somebody would who knows SQLite and takes the guards off first."""
    connection = sqlite3.connect(path)
    for trigger in ("entries_no_update", "entries_no_delete"):
        connection.execute(f"DROP TRIGGER {trigger}")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


TAMPERINGS = {
    "smaller cost": (["UPDATE entries SET epsilon = epsilon - 1 WHERE seq = 6"], "entry 6"),
    "smaller cost, totals mended": (
        [
            "UPDATE entries SET epsilon = epsilon - 1 WHERE seq = 6",
            "UPDATE budgets SET spent_epsilon = spent_epsilon - 1 WHERE subject = 's' OR (principal = 'p' AND subject = '')",
            "UPDATE accounts SET spent_epsilon = spent_epsilon - 1 WHERE principal = 'p'",
        ],
        "entry 6",
    ),
    "other receipt": (["UPDATE entries SET receipt = 'forged' WHERE seq = 5"], "entry 5"),
    "other time": (["UPDATE entries SET at = at - 1 WHERE seq = 17"], "entry 17"),
    "other account": (["UPDATE entries SET account_id = 3 - account_id WHERE seq = 6"], "entry 6"),
    "renamed principal": (["UPDATE accounts SET principal = 'z' WHERE principal = 'q'"], "entry 4"),
    "renamed statement": (["UPDATE statements SET statement = replace(statement, '1', '2')"], "entry 1"),
    "dropped from the middle": (["DELETE FROM entries WHERE seq = 8"], "entry 8 is missing"),
    "dropped several": (["DELETE FROM entries WHERE seq IN (8, 9)"], "entries 8 to 9 are missing"),
    "dropped from the end": (["DELETE FROM entries WHERE seq = 17"], "head names entry 17, the last entry is 16"),
    "dropped from the end, head mended": (
        ["DELETE FROM entries WHERE seq = 17", "UPDATE head SET seq = 16, digest = (SELECT digest FROM entries WHERE seq = 16)"],
        "account",
    ),
    "dropped and renumbered": (
        ["DELETE FROM entries WHERE seq = 15", *(f"UPDATE entries SET seq = {n - 1} WHERE seq = {n}" for n in (16, 17))],
        "entry 15",
    ),
    "reordered": (
        [
            "UPDATE entries SET seq = 100 WHERE seq = 16",
            "UPDATE entries SET seq = 16 WHERE seq = 17",
            "UPDATE entries SET seq = 17 WHERE seq = 100",
        ],
        "entry 16",
    ),
    "inserted": (
        [
            """INSERT INTO entries SELECT 18, at, action, budget_id, account_id, statement_id, epsilon, delta, answers, mechanism,
            reservation, receipt, digest FROM entries WHERE seq = 16""",
        ],
        "entry 18",
    ),
    "larger grant": (["UPDATE budgets SET granted_epsilon = granted_epsilon + 1 WHERE id = 1"], "grants another amount"),
    "cheaper budget": (["UPDATE budgets SET spent_epsilon = 0 WHERE id = 1"], "has spent another amount"),
    "cheaper account": (["UPDATE accounts SET spent_delta = 0 WHERE id = 1"], "account principal=q, subject=s says"),
    "budget that misses an account": (
        ["DELETE FROM covers WHERE budget_id = 1 AND account_id = 2"],
        "counts 1 accounts, expected 2",
    ),
    "other ledger": (["UPDATE head SET ledger = 'other'"], "entry 1"),
}


@pytest.mark.parametrize("name", TAMPERINGS)
def test_tampering_is_found(path: Path, name: str) -> None:
    statements, expected = TAMPERINGS[name]
    tamper(path, *statements)
    found = Ledger(Store(path)).verify()
    assert not found.ok
    assert any(expected in problem for problem in found.problems), found.problems


def test_a_chain_that_was_rewritten_whole_is_found_by_an_anchor(path: Path, make_event: EventMaker) -> None:
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    ledger = Ledger.open(path)
    ledger.reserve(Scope("p", "s"), make_event(), answers=1)
    anchor = ledger.verify().anchor
    ledger.reserve(Scope("p", "s"), make_event(), answers=1)
    assert ledger.verify(anchor=anchor).ok
    forged = Ledger.open(copy, anchor=copy.parent / "state")  # by somebody who brings an anchor of his own
    assert not forged.verify(anchor=anchor).ok  # an old copy put back
    for _ in range(2):
        forged.reserve(Scope("q", "s"), make_event(), answers=1)
    assert forged.verify().ok
    assert any("rewritten" in problem for problem in forged.verify(anchor=anchor).problems)


@pytest.mark.parametrize("anchor", ["", "5", "x:00", "5:zz", "1:00:00"])
def test_bad_anchors_are_refused(path: Path, anchor: str) -> None:
    with pytest.raises(InvalidInput, match="anchor="):
        Ledger.open(path).verify(anchor=anchor)


def test_an_empty_ledger_is_in_order(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "empty.db")
    found = ledger.verify()
    assert (found.ok, found.entries) == (True, 0)
    assert ledger.verify(anchor=found.anchor).ok
    assert not Ledger.create(tmp_path / "another.db").verify(anchor=found.anchor).ok
