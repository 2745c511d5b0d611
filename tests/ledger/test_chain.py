from __future__ import annotations

import fcntl
import hashlib
import json
from functools import partial
from pathlib import Path

import pytest

from reticent.core.errors import InvalidInput, LedgerUnavailable
from reticent.ledger import Ledger
from reticent.ledger.chain import ANCHOR_VARIABLE, Anchor, AnchorFile, Entry, anchor_file, genesis
from tests.together import in_forks

ENTRY = Entry(
    *(1, 1_700_000_000_000_000, "reserve", "acme", "ward-7", "", "{}", 100_000, 0, 1, "laplace"),
    *(0, "", "5a" * 32),
)


def test_the_digest_is_a_plain_hash_that_anybody_can_recompute() -> None:
    text = '[1,1700000000000000,"reserve","acme","ward-7","","{}",100000,0,1,"laplace",0,""]'
    link = hashlib.sha256(b"before" + text.encode()).digest()
    assert ENTRY.digest(b"before") == hashlib.sha256(link + bytes.fromhex(ENTRY.state)).digest()


@pytest.mark.parametrize("name", Entry._fields)
def test_every_field_counts(name: str) -> None:
    value = getattr(ENTRY, name)
    changed = ENTRY._replace(**{name: value + 1 if isinstance(value, int) else value + "00"})
    assert changed.digest(b"") != ENTRY.digest(b"")
    assert ENTRY.digest(b"a") != ENTRY.digest(b"b")


def test_ledgers_start_apart() -> None:
    assert len({genesis("one", ""), genesis("two", ""), genesis("one", "subject")}) == 3


def at(seq: int, digest: str = "ab") -> Anchor:
    return Anchor("ledger", seq, digest * 32, seq, 0)


@pytest.fixture
def file(tmp_path: Path) -> AnchorFile:
    made = AnchorFile(tmp_path / "state" / "ledger.anchor", durable=True, patience=0.2)
    made.read(to_write=True)
    return made


def test_an_anchor_only_moves_on(file: AnchorFile) -> None:
    assert file.read() is None
    assert file.raise_to(at(3)) == at(3)
    assert file.raise_to(at(2)) == at(3)
    assert file.raise_to(at(3, "cd")) == at(3)
    assert file.raise_to(at(7, "cd")) == file.read() == at(7, "cd")
    another = AnchorFile(file.path, durable=False, patience=1.0)  # which remembers nothing
    assert another.read() == another.raise_to(at(5)) == at(7, "cd")
    assert sorted(path.name for path in file.path.parent.iterdir()) == ["ledger.anchor"]


def _raise(file: AnchorFile, start: int) -> None:
    for seq in range(start, 400, 4):
        assert file.raise_to(at(seq)).seq >= seq


def test_many_processes_leave_the_latest(file: AnchorFile) -> None:
    patient = AnchorFile(file.path, durable=False, patience=60.0)
    in_forks(*(partial(_raise, patient, start) for start in range(4)))
    assert file.read() == at(399)


def sector(**change: object) -> bytes:
    values = {"ledger": "x", "seq": 1, "digest": "ab" * 32, "epsilon": 0, "delta": 0, **change}
    content = json.dumps(values, separators=(",", ":")).encode()
    return (content + b"\n" + hashlib.sha256(content).hexdigest().encode()).ljust(512, b"\n")


def test_sectors_are_made_as_the_tests_below_believe() -> None:
    assert Anchor.decode(sector()) == Anchor("x", 1, "ab" * 32, 0, 0)
    assert Anchor("x", 1, "ab" * 32, 0, 0).encode() == sector()
    assert len(Anchor("0" * 36, 2**63, "ab" * 32, 2**62, 2**62).encode()) == 512


@pytest.mark.parametrize(
    "content",
    [
        b"[]",
        bytes(1024),
        sector(),
        2 * sector().replace(b"1", b"2"),
        2 * sector(seq=True),
        2 * sector(seq=-1),
        2 * sector(digest=7),
        2 * sector(ledger=4),
        2 * sector(more=1),
        3 * sector(),
    ],
)
def test_what_is_no_anchor_is_refused(file: AnchorFile, content: bytes) -> None:
    file.path.write_bytes(content)
    with pytest.raises(LedgerUnavailable, match="expected the ledger's anchor"):
        file.raise_to(at(5))
    assert file.path.read_bytes() == content


@pytest.mark.parametrize("torn", range(0, 180, 17))
def test_a_write_that_is_cut_short_leaves_the_one_before(file: AnchorFile, torn: int) -> None:
    """Whichever sector it was on its way to, and wherever the power was cut."""
    for seq in (3, 4, 5):
        file.raise_to(at(seq))
    content = file.path.read_bytes()
    places = [0, 512] if Anchor.decode(content[:512]) == at(4) else [512, 0]
    assert Anchor.decode(content[places[1] :][:512]) == at(5)
    new = at(6, "cd").encode()[:torn]
    file.path.write_bytes(content[: places[0]] + new + content[places[0] + torn :])
    assert file.read() == at(5)
    assert file.raise_to(at(7)) == file.read() == at(7)


def test_a_lock_that_somebody_keeps_is_reported(file: AnchorFile) -> None:
    with file.path.open("w+b") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(
            LedgerUnavailable, match=r"another process held it for more than 0\.2 s"
        ):
            file.raise_to(at(1))
    assert file.raise_to(at(1)) == at(1)


def test_where_anchors_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def path(chosen: str | Path | None, database: Path | None = None) -> Path:
        return anchor_file(
            "name", chosen=chosen, database=database, durable=True, patience=1.0
        ).path

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv(ANCHOR_VARIABLE, raising=False)
    assert path(None) == tmp_path / "state" / "reticent" / "anchors" / "name.anchor"
    monkeypatch.setenv(ANCHOR_VARIABLE, str(tmp_path / "of the environment"))
    assert path(None) == tmp_path / "of the environment" / "name.anchor"
    assert path(tmp_path / "chosen") == tmp_path / "chosen" / "name.anchor"
    assert path(tmp_path / "one.anchor") == tmp_path / "one.anchor"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.delenv(ANCHOR_VARIABLE)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert path(None) == tmp_path / ".local" / "state" / "reticent" / "anchors" / "name.anchor"
    with pytest.raises(InvalidInput, match="outside the ledger's own folder"):
        path(tmp_path / "one.anchor", database=tmp_path / "ledger.db")


def test_a_file_of_its_own_binds_a_place_to_one_ledger(tmp_path: Path) -> None:
    """Whoever can write the database can put a ledger of another name there; a folder of anchors
    knows nothing of that name.
    """
    (tmp_path / "data").mkdir()
    for name, anchor in (("a.db", tmp_path / "kept.anchor"), ("b.db", None)):
        ledger = Ledger.create(tmp_path / "data" / name, anchor=anchor)
        ledger.set_policy(["principal"])
        ledger.close()
    (tmp_path / "data" / "b.db").replace(tmp_path / "data" / "a.db")
    with pytest.raises(LedgerUnavailable, match="is older than its anchor"):
        Ledger.open(tmp_path / "data" / "a.db", anchor=tmp_path / "kept.anchor")
