from __future__ import annotations

import random
import shutil
import sqlite3
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from reticent.core import AddRemove, Guarantee, Scope
from reticent.core.errors import CorruptLedger, LedgerUnavailable
from reticent.ledger import Ledger
from reticent.ledger.schema import SQLITE_TRIGGERS
from reticent.ledger.store import Store
from tests.events import make_event
from tests.ledger.conftest import receipt_for


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger of three grants, eight reservations and six commits."""
    file = tmp_path / "ledger.db"
    ledger = Ledger.create(file, synchronous="NORMAL")
    for scope in (Scope(subject="s"), Scope(principal="p"), Scope(principal="p", subject="t")):
        ledger.grant(scope, Guarantee(2.0, 1e-5, AddRemove()))
    for number in range(8):
        scope = Scope(principal="p" if number % 2 else "q", subject="s")
        reservation = ledger.reserve(
            scope, make_event(epsilon=0.1, delta=1e-8), answers=1 + number % 2
        )
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
            (
                "UPDATE budgets SET spent_epsilon = spent_epsilon - 1 WHERE subject = 's' OR "
                "(principal = 'p' AND subject = '')"
            ),
            "UPDATE accounts SET spent_epsilon = spent_epsilon - 1 WHERE principal = 'p'",
        ],
        "entry 6",
    ),
    "other receipt": (["UPDATE entries SET receipt = 'forged' WHERE seq = 5"], "entry 5"),
    "other time": (["UPDATE entries SET at = at - 1 WHERE seq = 17"], "entry 17"),
    "other account": (["UPDATE entries SET account_id = 3 - account_id WHERE seq = 6"], "entry 6"),
    "renamed principal": (["UPDATE accounts SET principal = 'z' WHERE principal = 'q'"], "entry 4"),
    "renamed statement": (
        ["UPDATE statements SET statement = replace(statement, '1', '2')"],
        "entry 1",
    ),
    "dropped from the middle": (["DELETE FROM entries WHERE seq = 8"], "entry 8 is missing"),
    "dropped several": (["DELETE FROM entries WHERE seq IN (8, 9)"], "entries 8 to 9 are missing"),
    "dropped from the end": (
        ["DELETE FROM entries WHERE seq = 17"],
        "head names entry 17, the last entry is 16",
    ),
    "dropped from the end, head mended": (
        [
            "DELETE FROM entries WHERE seq = 17",
            "UPDATE head SET seq = 16, digest = (SELECT digest FROM entries WHERE seq = 16)",
        ],
        "account",
    ),
    "dropped and renumbered": (
        [
            "DELETE FROM entries WHERE seq = 15",
            *(f"UPDATE entries SET seq = {n - 1} WHERE seq = {n}" for n in (16, 17)),
        ],
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
            """INSERT INTO entries SELECT 18, at, action, budget_id, account_id, statement_id,
            epsilon, delta, answers, mechanism, reservation, receipt, state, digest
            FROM entries WHERE seq = 16""",
        ],
        "entry 18",
    ),
    "larger grant": (
        ["UPDATE budgets SET granted_epsilon = granted_epsilon + 1 WHERE id = 1"],
        "grants another amount",
    ),
    "cheaper budget": (
        ["UPDATE budgets SET spent_epsilon = 0 WHERE id = 1"],
        "has spent another amount",
    ),
    "cheaper account": (
        ["UPDATE accounts SET spent_delta = 0 WHERE id = 1"],
        "account principal=q, subject=s says",
    ),
    "planted key": (
        ["INSERT INTO api_keys VALUES ('00', x'00', 'q', 'client', '[]', '[]', 0, NULL, NULL)"],
        "table api_keys is not as the chain knows it",
    ),
    "planted answer": (
        ["INSERT INTO service_answers VALUES ('q', 'r', x'00', 'lost', 0, 0, 'b', NULL, NULL)"],
        "table service_answers is not as the chain knows it",
    ),
    "removed budget": (["DELETE FROM budgets WHERE id = 3"], "the chain knows were removed"),
    "removed nodes": (["DELETE FROM nodes"], "the tree over the rows was changed"),
    "other root": (["UPDATE head SET root = zeroblob(32)"], "head does not match its own digest"),
    "other ledger": (["UPDATE head SET ledger = 'other'"], "entry 1"),
}


@pytest.mark.parametrize("name", TAMPERINGS)
def test_tampering_is_found(path: Path, name: str) -> None:
    statements, expected = TAMPERINGS[name]
    tamper(path, *statements)
    found = Ledger(Store(path)).verify()
    assert not found.ok
    assert any(expected in problem for problem in found.problems), found.problems


def test_a_chain_that_was_rewritten_whole_is_found_by_an_anchor(path: Path) -> None:
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    ledger = Ledger.open(path)
    ledger.reserve(Scope("p", "s"), make_event(), answers=1)
    anchor = ledger.verify().anchor
    ledger.reserve(Scope("p", "s"), make_event(), answers=1)
    assert ledger.verify(anchor=anchor).ok
    # by somebody who brings an anchor of his own
    forged = Ledger(Store(copy, anchor=copy.parent / "state"))
    forged.adopt()
    assert not forged.verify(anchor=anchor).ok  # an old copy put back
    for _ in range(2):
        forged.reserve(Scope("q", "s"), make_event(), answers=1)
    assert forged.verify().ok
    assert any("rewritten" in problem for problem in forged.verify(anchor=anchor).problems)


def test_dropped_guards_are_found_though_every_entry_is_right(path: Path) -> None:
    tamper(path)
    assert Ledger.open(path).verify().problems == (
        "trigger entries_no_update is missing",
        "trigger entries_no_delete is missing",
    )


MUST_BE_FOUND = "found: "
VALUES = (
    None,
    0,
    -1,
    2**63 - 1,
    7.5,
    float("inf"),
    "",
    "x",
    "\x00",
    "\ud7ff\u0301",
    b"",
    b"\xff" * 40,
    10**12,
    "9" * 400,
)


def _random_cell(connection: sqlite3.Connection, rng: random.Random) -> str:
    table = rng.choice(
        [
            "head",
            "statements",
            "budgets",
            "accounts",
            "nodes",
            "entries",
            "entries",
            "alembic_version",
        ]
    )
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    rows = [row[0] for row in connection.execute(f"SELECT rowid FROM {table}")]
    column, row, value = rng.choice(columns), rng.choice(rows), rng.choice(VALUES)
    before = connection.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (row,)).fetchone()
    connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, row))
    after = connection.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (row,)).fetchone()
    # The version of the schema is looked at when a ledger is opened, and not by verify.
    told = MUST_BE_FOUND if repr(before) != repr(after) and table != "alembic_version" else ""
    return f"{told}{table}.{column} of row {row} is {value!r}"


def _random_row(connection: sqlite3.Connection, rng: random.Random) -> str:
    table = rng.choice(["head", "statements", "budgets", "accounts", "nodes", "entries"])
    rows = [row[0] for row in connection.execute(f"SELECT rowid FROM {table}")]
    connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (rng.choice(rows),))
    return f"{MUST_BE_FOUND}a row of {table} is gone"


def _random_schema(connection: sqlite3.Connection, rng: random.Random) -> str:
    connection.execute("PRAGMA writable_schema = ON")
    name, sql = rng.choice(
        connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    )
    at = rng.randrange(len(sql))
    connection.execute(
        "UPDATE sqlite_master SET sql = ? WHERE name = ?",
        (sql[:at] + rng.choice("x)(',1 ") + sql[at + 1 :], name),
    )
    return f"schema of {name} changed at {at}"


def _random_bytes(path: Path, rng: random.Random) -> str:
    content = bytearray(path.read_bytes())
    places = [rng.randrange(len(content)) for _ in range(rng.choice([1, 4, 40]))]
    for place in places:
        content[place] = rng.randrange(256)
    path.write_bytes(content[: rng.choice([len(content), len(content), len(content) // 2])])
    return f"bytes changed at {places[:3]}"


def _tampered(path: Path, rng: random.Random) -> str:
    """Changes a file at random, as somebody would who has taken every guard off, and says how."""
    if rng.random() < 0.3:
        return _random_bytes(path, rng)
    connection = sqlite3.connect(path)
    try:
        for pragma in (
            "foreign_keys = OFF",
            "ignore_check_constraints = ON",
            "writable_schema = ON",
        ):
            connection.execute(f"PRAGMA {pragma}")
        for trigger in ("entries_no_update", "entries_no_delete"):
            connection.execute(f"DROP TRIGGER {trigger}")
        if rng.random() < 0.5:
            connection.execute(
                "UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '') WHERE type = 'table'"
            )
            connection.commit()
            connection.close()
            connection = sqlite3.connect(path)
            connection.execute("PRAGMA ignore_check_constraints = ON")
        done = rng.choice([_random_cell, _random_cell, _random_cell, _random_row, _random_schema])(
            connection, rng
        )
        for guard in SQLITE_TRIGGERS.values():
            connection.execute(guard)
        connection.commit()
    except sqlite3.Error as error:
        return f"refused by the database: {error}"
    finally:
        connection.close()
    return done


@pytest.mark.parametrize("files", [80, pytest.param(1200, marks=pytest.mark.soak)])
def test_a_tampered_file_is_described_and_never_an_error(
    path: Path, files: int, tmp_path: Path
) -> None:
    """verify either names what is wrong, or says that the file cannot be read as a ledger at
    all; it raises nothing else.
    """
    content, copy, found = path.read_bytes(), tmp_path / "copies" / "ledger.db", Counter[str]()
    copy.parent.mkdir()
    for seed in range(files):
        for left in copy.parent.iterdir():
            left.unlink(missing_ok=True)  # SQLite removes its own files late
        copy.write_bytes(content)
        done = _tampered(copy, random.Random(seed))
        store = Store(copy)
        try:
            problems = Ledger(store).verify().problems
            found["named" if problems else "nothing wrong"] += 1
            assert problems or not done.startswith(MUST_BE_FOUND), (seed, done)
            assert all(isinstance(problem, str) for problem in problems)
        except LedgerUnavailable:
            found["unreadable"] += 1
        except Exception as error:
            pytest.fail(f"seed {seed}, {done}: {type(error).__name__}: {error}")
        finally:
            store.close()
    assert found["named"] > files / 3, found
    assert found["unreadable"] < files / 3, found


@pytest.mark.parametrize(
    "change",
    [
        "digest = 'text'",
        "ledger = x'00ff'",
        "required = 'person'",
    ],
)
def test_a_head_that_no_ledger_writes_gives_no_answer(path: Path, change: str) -> None:
    tamper(path, f"UPDATE head SET {change}")
    ledger = Ledger(Store(path))
    for use in (
        ledger.report,
        lambda: ledger.reserve(Scope("p", "s"), make_event(), answers=1),
        ledger.check_anchor,
    ):
        with pytest.raises(CorruptLedger, match="head was changed"):
            use()
    assert not ledger.verify().ok


@pytest.mark.parametrize("each", [False, True], ids=["one scope", "a scope each"])
def test_a_receipt_is_compared_with_the_entries_that_paid_for_it(
    tmp_path: Path, scope: Scope, each: bool
) -> None:
    ledger = Ledger.create(tmp_path / "a.db")
    ledger.grant(scope, Guarantee(1.0, 1e-6, AddRemove()))
    event = make_event()
    scopes = [scope, replace(scope, bundle="another"), scope]
    with (
        ledger.reserve_each(scopes, event) if each else ledger.reserve(scope, event, answers=3)
    ) as reservation:
        receipt = receipt_for(reservation, event.guarantee, 3)
        reservation.commit(receipt.identifier)
    assert reservation.scopes == 1 + each
    assert ledger.verify(receipts=[receipt]).ok
    for changed in (replace(receipt, answers=1), replace(receipt, identifier="another")):
        (problem,) = ledger.verify(receipts=[changed]).problems
        assert changed.identifier in problem
