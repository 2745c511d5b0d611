from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from reticent.ledger import Ledger
from reticent.ledger.schema import schema_problems
from reticent.ledger.store import Store


def problems(path: Path) -> list[str]:
    store = Store(path)
    with store.read() as connection:
        found = list(schema_problems(connection))
    store.close()
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    Ledger.create(tmp_path / "ledger.db").close()
    return tmp_path / "ledger.db"


def change(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA writable_schema = ON")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def test_a_new_ledger_has_none(path: Path) -> None:
    assert problems(path) == []


def rewritten(table: str, before: str, after: str) -> str:
    return (
        f"UPDATE sqlite_master SET sql = replace(sql, '{before}', '{after}') WHERE name = '{table}'"
    )


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("DROP TRIGGER entries_no_update", "trigger entries_no_update is missing"),
        (
            (
                "CREATE TRIGGER refund AFTER INSERT ON entries BEGIN UPDATE budgets SET "
                "spent_epsilon = 0; END"
            ),
            "trigger refund is not part of a ledger",
        ),
        (
            rewritten("entries_no_delete", "are append-only", "may go"),
            "trigger entries_no_delete does something else",
        ),
        ("DROP TABLE nodes", "table nodes is missing"),
        (
            rewritten("budgets", "spent_epsilon BETWEEN 0 AND granted_epsilon", "1 = 1"),
            "check budgets_epsilon of table budgets says",
        ),
        (
            rewritten("budgets", "granted_delta BIGINT NOT NULL", "granted_delta BIGINT"),
            "column budgets.granted_delta takes other",
        ),
        (
            rewritten("entries", "entries_commit_once", "renamed"),
            "unique constraint entries_commit_once of table entries is missing",
        ),
        (
            rewritten("entries", "accounts (id, statement_id)", "accounts (id, commits)"),
            "foreign key entries_account of table entries",
        ),
        ("ALTER TABLE head ADD COLUMN note TEXT", "column head.note is not part of a ledger"),
        ("ALTER TABLE head DROP COLUMN required", "column head.required is missing"),
    ],
)
def test_every_difference_is_named(path: Path, statement: str, expected: str) -> None:
    change(path, statement)
    assert any(expected in problem for problem in problems(path)), problems(path)
