"""What somebody with the database's password, or another user of the machine, tries."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from reticent.core import AddRemove, Guarantee, Scope
from reticent.core.errors import CorruptLedger, InvalidInput, LedgerUnavailable
from reticent.ledger import Ledger
from reticent.ledger.chain import Anchor, read_tip
from tests.events import make_event

WARD = Scope("acme", "ward-7")
CUT = ("DROP TRIGGER entries_no_delete", "DELETE FROM entries WHERE seq = 3")
HEAD = ("UPDATE head SET seq = 2",)
DIGEST = ("DROP TRIGGER entries_no_update", "UPDATE entries SET digest = x'00' WHERE seq = 3")


@pytest.mark.parametrize("statements", [CUT, HEAD, DIGEST])
def test_a_head_without_its_entry_is_refused_at_the_next_request(
    tmp_path: Path, statements: tuple[str, ...]
) -> None:
    path = tmp_path / "ledger.db"
    anchors = tmp_path / "anchors"
    ledger = Ledger.create(path, synchronous="NORMAL", anchor=anchors)
    ledger.grant(Scope(subject="ward-7"), Guarantee(1.0, 0.0, AddRemove()))
    for _ in range(2):
        ledger.reserve(WARD, make_event(), answers=1)
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    with pytest.raises(CorruptLedger):
        ledger.reserve(WARD, make_event(), answers=1)
    with pytest.raises((CorruptLedger, LedgerUnavailable)):
        Ledger.open(path, anchor=anchors)
    assert ledger.report().budgets[0].spent_epsilon == 200_000
    ledger.close()


BUDGET_EDITS = {
    "budget given back": "UPDATE budgets SET spent_epsilon = 0 WHERE subject = 'ward-7'",
    "larger grant": "UPDATE budgets SET granted_epsilon = 9000000 WHERE subject = 'ward-7'",
    "cap of the client renamed": "UPDATE budgets SET principal = 'z' WHERE principal = 'acme'",
    "other adjacency": "UPDATE statements SET statement = replace(statement, '1', '2')",
    "no policy": "UPDATE head SET required = ''",
    "total of all charges": "UPDATE head SET spent_epsilon = 0",
    "no gap": "UPDATE head SET gap_epsilon = 0",
    "account spent nothing": "UPDATE accounts SET spent_epsilon = 0",
}


@pytest.mark.parametrize("sql", BUDGET_EDITS.values(), ids=BUDGET_EDITS)
def test_no_charge_on_rows_that_were_edited(ledger_url: str, sql: str) -> None:
    """And neither a preview, nor a grant that would begin with what was spent before."""
    ledger = Ledger.create(ledger_url, synchronous="NORMAL")
    ledger.grant(Scope(subject="ward-7"), Guarantee(4.0, 0.0, AddRemove()))
    ledger.grant(Scope(principal="acme"), Guarantee(3.0, 0.0, AddRemove()))
    ledger.reserve(WARD, make_event(), answers=1)
    with ledger.store.read() as connection:  # a lost entry was charged, so that there is a gap
        tip = read_tip(connection)
    ledger.store.anchor_of(tip.ledger).raise_to(
        Anchor(tip.ledger, tip.seq + 1, "0" * 64, tip.spent[0] + 5, 0)
    )
    ledger.accept_rollback(charge=True)
    ledger.reserve(WARD, make_event(), answers=1)
    with ledger.store.write() as connection:
        assert connection.exec_driver_sql(sql).rowcount > 0
    asks: list[Callable[[], object]] = [
        lambda: ledger.reserve(WARD, make_event(), answers=1),
        lambda: ledger.reserve_each([WARD] * 2, make_event()),
        lambda: ledger.preview(WARD, make_event(), answers=1),
    ]
    if "accounts" in sql or "head" in sql:
        asks.append(lambda: ledger.grant(Scope(bundle="b"), Guarantee(9.0, 0.0, AddRemove())))
    for ask in asks:
        with pytest.raises(CorruptLedger):
            ask()
    assert not ledger.verify().ok
    with ledger.store.read() as connection:
        count = connection.exec_driver_sql("SELECT max(seq) FROM entries").scalar()
        assert read_tip(connection, check=False).seq == count == tip.seq + 5
    ledger.close()


def test_an_old_total_with_its_old_nodes_is_refused(tmp_path: Path) -> None:
    """Budgets, tree and head as they once were, put back under the entries that came since."""
    path = tmp_path / "ledger.db"
    ledger = Ledger.create(path, synchronous="NORMAL")
    ledger.grant(Scope(subject="ward-7"), Guarantee(1.0, 0.0, AddRemove()))
    tables = ("budgets", "accounts", "nodes", "head")
    with closing(sqlite3.connect(path)) as connection:
        old = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in tables}
    ledger.reserve(WARD, make_event(), answers=9)
    with closing(sqlite3.connect(path)) as connection, connection:
        for name in tables[:3]:
            connection.execute(f"DELETE FROM {name}")
            for row in old[name]:
                marks = ", ".join("?" * len(row))
                connection.execute(f"INSERT INTO {name} VALUES ({marks})", row)
    with pytest.raises(CorruptLedger):
        ledger.reserve(WARD, make_event(), answers=9)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM head")
        marks = ", ".join("?" * len(old["head"][0]))
        connection.execute(f"INSERT INTO head VALUES ({marks})", old["head"][0])
    with pytest.raises(CorruptLedger):
        ledger.reserve(WARD, make_event(), answers=9)
    ledger.close()


def _removed(file: Path) -> None:
    file.unlink()


def _emptied(file: Path) -> None:
    file.write_bytes(b"")


def _elsewhere(file: Path) -> None:
    file.rename(file.with_name("elsewhere"))


@pytest.mark.parametrize("lose", [_removed, _emptied, _elsewhere])
def test_a_ledger_without_its_anchor_asks_its_operator(
    ledger_url: str,
    tmp_path: Path,
    lose: Callable[..., None],
) -> None:
    anchors = tmp_path / "anchors"
    ledger = Ledger.create(ledger_url, synchronous="NORMAL", anchor=anchors)
    (file,) = anchors.iterdir()
    ledger.grant(Scope(subject="ward-7"), Guarantee(1.0, 0.0, AddRemove()))
    ledger.reserve(WARD, make_event(), answers=1)
    lose(file)
    for ask in (
        lambda: ledger.reserve(WARD, make_event(), answers=1),
        lambda: Ledger.open(ledger_url, anchor=anchors),
        lambda: Ledger.create(ledger_url, anchor=anchors),
    ):
        with pytest.raises(LedgerUnavailable, match="ledger adopt"):
            ask()
    assert ledger.adopt() == ledger.anchor()
    with pytest.raises(InvalidInput):
        ledger.adopt()
    ledger.reserve(WARD, make_event(), answers=1)
    Ledger.open(ledger_url, anchor=anchors).close()
    assert ledger.report().budgets[0].spent_epsilon == 200_000
    assert ledger.verify().ok
    ledger.close()


def test_a_ledger_that_was_edited_is_not_adopted(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db", anchor=tmp_path / "anchors")
    ledger.grant(Scope(subject="ward-7"), Guarantee(1.0, 0.0, AddRemove()))
    ledger.reserve(WARD, make_event(), answers=1)
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection, connection:
        connection.execute("UPDATE budgets SET spent_epsilon = 0")
    for file in (tmp_path / "anchors").iterdir():
        file.unlink()
    with pytest.raises(CorruptLedger):
        ledger.adopt()
    ledger.close()


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
def test_its_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o755)
    ledger = Ledger.create(tmp_path / "data" / "ledger.db", anchor=tmp_path / "anchors")
    ledger.grant(Scope(subject="ward-7"), Guarantee(1.0, 0.0, AddRemove()))
    files = [*(tmp_path / "data").iterdir(), *(tmp_path / "anchors").iterdir()]
    assert len(files) >= 2
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    ledger.close()
