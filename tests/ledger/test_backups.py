from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from reticent.accounting import PrivacyEvent
from reticent.core import Scope
from reticent.core.errors import CorruptLedger, InvalidInput, LedgerUnavailable
from reticent.ledger import Ledger
from reticent.ledger.backups import backup, restore
from reticent.ledger.store import Store
from tests.events import make_event

WARD = Scope(subject="ward-7")


def spend(path: Path, event: PrivacyEvent, answers: int) -> None:
    ledger = Ledger.open(path, synchronous="NORMAL")
    ledger.reserve(WARD, event, answers=answers).commit("receipt")
    ledger.close()


def left(path: Path) -> int:
    ledger = Ledger.open(path)
    assert ledger.verify().problems == ()
    (budget,) = ledger.report().budgets
    ledger.close()
    return budget.left_epsilon


def test_a_backup_holds_what_is_still_in_the_log(path: Path, tmp_path: Path) -> None:
    ledger = Ledger.open(path, synchronous="NORMAL")
    ledger.reserve(WARD, make_event(), answers=3).commit("receipt")
    assert path.with_name("ledger.db-wal").stat().st_size > 0
    output = tmp_path / "backup.db"
    assert backup(ledger.store, output, overwrite=False) == ledger.anchor().text
    with pytest.raises(InvalidInput, match="exists already"):
        backup(ledger.store, output, overwrite=False)
    assert backup(ledger.store, output, overwrite=True) == ledger.anchor().text
    with pytest.raises(InvalidInput, match="is the ledger itself"):
        backup(ledger.store, path, overwrite=True)
    with pytest.raises(InvalidInput, match="never replaced"):
        backup(ledger.store, "/dev/null", overwrite=True)
    ledger.close()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["backup.db", "data"]
    with closing(sqlite3.connect(output)) as connection, connection:
        assert connection.execute("SELECT count(*) FROM entries").fetchone() == (3,)
    connection.close()


def test_the_newest_backup_replaces_a_ledger_that_is_lost_or_damaged(
    path: Path, tmp_path: Path
) -> None:
    spend(path, make_event(), 4)
    store = Store(path)
    anchor = backup(store, tmp_path / "backup.db", overwrite=False)
    store.close()
    path.write_bytes(path.read_bytes()[:5000] + b"x" * 20_000)
    done = restore(store, tmp_path / "backup.db", charge_lost=None)
    assert (done.anchor, done.lost, done.charged) == (anchor, 0, (0, 0))
    assert done.aside is not None
    assert done.aside.read_bytes().endswith(b"x")
    assert left(path) == 600_000
    path.unlink()
    assert restore(store, tmp_path / "backup.db", charge_lost=None).aside is None
    assert left(path) == 600_000


@pytest.mark.parametrize(("charge", "rest"), [(True, 300_000), (False, 900_000)])
def test_an_older_backup_needs_a_choice(
    path: Path, tmp_path: Path, charge: bool, rest: int
) -> None:
    spend(path, make_event(), 1)
    store = Store(path)
    backup(store, tmp_path / "backup.db", overwrite=False)
    store.close()
    spend(path, make_event(), 6)
    before = path.read_bytes()
    with pytest.raises(
        InvalidInput, match=r"ends at entry 3, and this ledger was seen at entry 4\..*--charge-lost"
    ):
        restore(store, tmp_path / "backup.db", charge_lost=None)
    assert path.read_bytes() == before
    keeper = Ledger.open(path, synchronous="NORMAL")
    keeper.reserve(WARD, make_event(epsilon=1e-6), answers=1)
    with pytest.raises(LedgerUnavailable, match="is in use by another process"):
        restore(store, tmp_path / "backup.db", charge_lost=charge)
    keeper.close()
    done = restore(store, tmp_path / "backup.db", charge_lost=charge)
    assert (done.lost, done.charged) == (3, (600_001, 0) if charge else (0, 0))
    assert left(path) == rest - (1 if charge else 0)
    assert sorted(file.name for file in path.parent.iterdir() if "replaced" not in file.name) == [
        "ledger.db"
    ]


def test_what_is_no_backup_of_this_ledger_is_not_put_in_its_place(
    path: Path, tmp_path: Path
) -> None:
    store, other = Store(path), Ledger.create(tmp_path / "other.db")
    with pytest.raises(InvalidInput, match=r"holds the ledger .*, the backup is of"):
        restore(store, tmp_path / "other.db", charge_lost=None)
    with other.store.write() as connection:
        connection.exec_driver_sql("UPDATE head SET spent_epsilon = 7")
    other.close()
    with pytest.raises(CorruptLedger, match="use another copy"):
        restore(store, tmp_path / "other.db", charge_lost=None)
    (tmp_path / "text").write_text("no database at all" * 1000)
    for source in ("text", "missing"):
        with pytest.raises(LedgerUnavailable, match="could not be copied"):
            restore(store, tmp_path / source, charge_lost=None)
    with pytest.raises(LedgerUnavailable, match="expected the folder"):
        restore(Store(tmp_path / "no" / "ledger.db"), tmp_path / "other.db", charge_lost=None)
    assert left(path) == 1_000_000
    assert [file.name for file in path.parent.iterdir()] == ["ledger.db"]
