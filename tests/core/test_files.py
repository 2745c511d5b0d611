"""Output files appear whole or not at all."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path

import pytest

from reticent.core.errors import InvalidInput, WriteFailed
from reticent.core.files import output_file, output_folder


def test_writes_the_content_and_leaves_nothing_else(tmp_path):
    with output_file(tmp_path / "new" / "a.bin", size=100, overwrite=False) as put:
        assert not (tmp_path / "new" / "a.bin").exists()
        put(b"whole")
    assert (tmp_path / "new" / "a.bin").read_bytes() == b"whole"
    assert os.listdir(tmp_path / "new") == ["a.bin"]


def test_a_failing_caller_leaves_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError), output_file(tmp_path / "a.bin", size=10, overwrite=False):
        raise ZeroDivisionError
    assert os.listdir(tmp_path) == []


def test_replaces_only_on_request(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"old")
    with pytest.raises(InvalidInput, match="exists already"), output_file(tmp_path / "a.bin", size=0, overwrite=False):
        pass
    with output_file(tmp_path / "a.bin", size=0, overwrite=True) as put:
        put(b"new")
    assert (tmp_path / "a.bin").read_bytes() == b"new"


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(InvalidInput, match="is a folder"), output_file(tmp_path, size=0, overwrite=True):
        pass


def test_a_file_in_the_place_of_a_folder_is_reported(tmp_path):
    (tmp_path / "taken").write_text("")
    with (
        pytest.raises(WriteFailed, match=r"could not be written \((Not a directory|File exists)\)"),
        output_file(tmp_path / "taken" / "a.bin", size=0, overwrite=False),
    ):
        pass


@pytest.fixture
def small_files():
    """No file may grow beyond 4096 bytes: what a full disk looks like to the one who writes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.usefixtures("small_files")
def test_no_room_is_found_out_before_the_caller_computes(tmp_path: Path):
    (tmp_path / "a.bin").write_bytes(b"old")
    with pytest.raises(WriteFailed, match="nothing was left behind"), output_file(tmp_path / "a.bin", size=9999, overwrite=True):
        pytest.fail("computed although there is no room")
    assert (tmp_path / "a.bin").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.bin"]


@pytest.mark.usefixtures("small_files")
def test_no_room_while_writing_leaves_what_was_there(tmp_path: Path):
    (tmp_path / "a.bin").write_bytes(b"old")
    with (
        pytest.raises(WriteFailed, match="nothing was left behind"),
        output_file(tmp_path / "a.bin", size=0, overwrite=True) as put,
    ):
        put(bytes(9999))
    assert (tmp_path / "a.bin").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.bin"]


def _fill(path: Path, *, overwrite: bool = False) -> None:
    with output_folder(path, marker="kind.txt", overwrite=overwrite) as folder:
        assert not path.exists() or overwrite
        folder.write("kind.txt", b"mine")
        folder.write("more.txt", b"more")


def test_a_folder_appears_when_it_is_full(tmp_path):
    _fill(tmp_path / "deep" / "out")
    assert sorted(os.listdir(tmp_path / "deep" / "out")) == ["kind.txt", "more.txt"]
    assert os.listdir(tmp_path / "deep") == ["out"]


def test_a_folder_is_replaced_on_request_and_only_by_its_own_kind(tmp_path):
    (tmp_path / "thesis").mkdir()
    with pytest.raises(InvalidInput, match=r"holds no kind\.txt, so it will not be replaced"):
        _fill(tmp_path / "thesis", overwrite=True)
    _fill(tmp_path / "out")
    (tmp_path / "out" / "old.txt").write_text("old")
    with pytest.raises(InvalidInput, match="exists already"):
        _fill(tmp_path / "out")
    _fill(tmp_path / "out", overwrite=True)
    assert sorted(os.listdir(tmp_path / "out")) == ["kind.txt", "more.txt"]
    assert sorted(os.listdir(tmp_path)) == ["out", "thesis"]


@pytest.mark.usefixtures("small_files")
def test_a_folder_without_room_leaves_the_old_one(tmp_path: Path):
    _fill(tmp_path / "out")
    with pytest.raises(WriteFailed), output_folder(tmp_path / "out", marker="kind.txt", overwrite=True) as folder:
        folder.write("large.bin", bytes(9999))
    assert (tmp_path / "out" / "kind.txt").read_bytes() == b"mine"
    assert os.listdir(tmp_path) == ["out"]
