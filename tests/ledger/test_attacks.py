"""What somebody with the database's password, or another user of the machine, tries."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from reticent.accounting import PrivacyEvent
from reticent.core import AddRemove, Guarantee, Scope
from reticent.core.errors import CorruptLedger
from reticent.ledger import Ledger

WARD = Scope("acme", "ward-7")
CUT = ("DROP TRIGGER entries_no_delete", "DELETE FROM entries WHERE seq = 3")
HEAD = ("UPDATE head SET seq = 2",)
DIGEST = ("DROP TRIGGER entries_no_update", "UPDATE entries SET digest = x'00' WHERE seq = 3")


@pytest.mark.parametrize("statements", [CUT, HEAD, DIGEST])
def test_a_head_without_its_entry_is_refused_at_the_next_request(
    tmp_path: Path, make_event: Callable[..., PrivacyEvent], statements: tuple[str, ...]
) -> None:
    path = tmp_path / "ledger.db"
    anchors = tmp_path / "anchors"
    ledger = Ledger.create(path, synchronous="NORMAL", anchor=anchors)
    ledger.grant(Scope(subject="ward-7"), Guarantee(1.0, 0.0, AddRemove()))
    for _ in range(2):
        ledger.reserve(WARD, make_event(), answers=1)
    for file in anchors.iterdir():
        file.unlink()  # without it only the database itself can tell
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    with pytest.raises(CorruptLedger):
        ledger.reserve(WARD, make_event(), answers=1)
    with pytest.raises(CorruptLedger):
        Ledger.open(path, anchor=anchors)
    assert ledger.report().budgets[0].spent_epsilon == 200_000
    ledger.close()


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
def test_its_files_are_for_their_owner_alone(
    tmp_path: Path, make_event: Callable[..., PrivacyEvent]
) -> None:
    (tmp_path / "data").mkdir(mode=0o755)
    ledger = Ledger.create(tmp_path / "data" / "ledger.db", anchor=tmp_path / "anchors")
    ledger.grant(Scope(subject="ward-7"), Guarantee(1.0, 0.0, AddRemove()))
    files = [*(tmp_path / "data").iterdir(), *(tmp_path / "anchors").iterdir()]
    assert len(files) >= 2
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    ledger.close()
