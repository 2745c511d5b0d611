"""A ledger's file has one name, and secrets of its URL stay out of everything that is printed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reticent.accounting import PrivacyEvent
from reticent.core import Scope
from reticent.core.errors import InvalidInput, LedgerUnavailable
from reticent.ledger import Ledger
from reticent.ledger.location import Location, checked_file
from tests.events import make_event

WARD = Scope(subject="ward-7")


def answered(ledger: Ledger, event: PrivacyEvent) -> str:
    try:
        ledger.reserve(WARD, event, answers=1).commit("receipt")
    except LedgerUnavailable as error:
        return str(error)
    return "answered"


def test_a_hard_link_is_refused_whichever_name_is_used(path: Path) -> None:
    """Two names are two logs: twenty answers on a budget of ten, and neither side sees anything
    wrong.
    """
    other = path.parent.parent / "other.db"
    os.link(path, other)
    for name in (path, other):
        with pytest.raises(LedgerUnavailable, match=r"has 2 links, expected one"):
            Ledger.open(name)
    other.unlink()
    assert answered(Ledger.open(path), make_event()) == "answered"


def test_a_hard_link_made_while_the_ledger_is_open_stops_both_sides(path: Path) -> None:
    ledger = Ledger.open(path)
    assert answered(ledger, make_event()) == "answered"
    os.link(path, path.with_name("other.db"))
    assert "has 2 links" in answered(ledger, make_event())
    with pytest.raises(LedgerUnavailable, match="has 2 links"):
        Ledger.open(path.with_name("other.db"))
    path.with_name("other.db").unlink()
    assert answered(ledger, make_event()) == "answered"
    assert ledger.verify().ok


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_a_link_in_place_of_a_log_is_refused(path: Path, suffix: str) -> None:
    elsewhere = path.parent / "log"
    elsewhere.write_bytes(b"")
    path.with_name(path.name + suffix).symlink_to(elsewhere)
    with pytest.raises(LedgerUnavailable, match="expected an ordinary file"):
        Ledger.open(path)


def test_a_file_that_takes_the_ledgers_place_while_it_is_open_is_noticed(path: Path) -> None:
    ledger = Ledger.open(path)
    assert answered(ledger, make_event()) == "answered"
    shutil.copy(path, path.with_name("copy.db"))
    path.with_name("copy.db").replace(path)
    assert "another file was put in the ledger's place" in answered(ledger, make_event())
    path.unlink()
    assert "no ledger here any more" in answered(ledger, make_event())


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.db")
    for name in ("pipe.db", "."):
        with pytest.raises(LedgerUnavailable, match="expected an ordinary file"):
            Ledger.open(tmp_path / name)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(InvalidInput, match="expected a path"):
        Ledger.open(tmp_path / "loop")


_IN_A_NAMESPACE = """
import sys
from pathlib import Path
from reticent.ledger.location import checked_file
from reticent.core.errors import LedgerUnavailable
for name in sys.argv[1:]:
    try:
        checked_file(Path(name))
    except LedgerUnavailable as error:
        print(error)
    else:
        print("one name")
"""


def _mounting() -> list[str]:
    """How to run a command where it may mount, or nothing where that is not allowed."""
    for command in (["unshare", "--mount"], ["unshare", "--mount", "--map-root-user"]):
        if (
            shutil.which("unshare")
            and subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
        ):
            return command
    return []


def test_a_file_that_is_mounted_by_itself_is_refused(path: Path, tmp_path: Path) -> None:
    """On its own device, where the device number tells nothing, and under a name that the list
    of mounts has to escape.
    """
    unshare = _mounting()
    if not unshare:
        pytest.skip("mounting is not allowed here")
    single, folder = tmp_path / "a place" / "l \\ b.db", tmp_path / "folder"
    single.parent.mkdir()
    single.touch()
    folder.mkdir()
    assert single.stat().st_dev == path.stat().st_dev
    script = 'mount --bind "$1" "$2" && mount --bind "$3" "$4" && shift 4 && exec "$@"'
    python = [
        sys.executable,
        "-c",
        _IN_A_NAMESPACE,
        str(single),
        str(folder / path.name),
        str(path),
    ]
    words = [str(path), str(single), str(path.parent), str(folder)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [*unshare, "sh", "-c", script, "sh", *words, *python],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    mounted, in_a_mounted_folder, itself = done.stdout.splitlines()
    assert "is mounted by itself" in mounted
    assert "mount its folder instead" in mounted
    assert (in_a_mounted_folder, itself) == ("one name", "one name")


def test_where_the_system_lists_no_mounts_devices_are_compared(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reticent.ledger.location._MOUNTS", path.parent / "missing")
    checked_file(path)
    if Path("/dev/shm").stat().st_dev != path.stat().st_dev:
        monkeypatch.setattr(
            "reticent.ledger.location.Path.parent", property(lambda _: Path("/dev/shm"))
        )
        with pytest.raises(LedgerUnavailable, match="is mounted by itself"):
            checked_file(path)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:s3cret@host:s3cret2/x",
        "sqlite:///a.db?password=s3cret",
        "mysql://me:s3cret@h/x",
    ],
)
def test_a_url_that_cannot_be_used_is_not_repeated(url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Location.of(url)
    error: BaseException | None = refused.value
    while error is not None:
        assert "s3cret" not in f"{error} {error!r}"
        error = error.__cause__ or error.__context__
