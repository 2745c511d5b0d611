"""Output files appear whole or not at all."""

from __future__ import annotations

import gzip
import io
import os
import socket
import stat
from pathlib import Path

import pytest

from reticent.core.errors import InvalidInput, WriteFailed
from reticent.core.files import (
    LimitedReader,
    UnpacksTooFar,
    output_file,
    output_folder,
    read_regular,
    unpacked,
)
from tests.machine import no_file_beyond


def test_writes_the_content_and_leaves_nothing_else(tmp_path):
    with output_file(tmp_path / "new" / "a.bin", size=100, overwrite=False) as put:
        assert not (tmp_path / "new" / "a.bin").exists()
        put(b"whole")
    assert (tmp_path / "new" / "a.bin").read_bytes() == b"whole"
    assert os.listdir(tmp_path / "new") == ["a.bin"]


def test_replaces_only_on_request(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"old")
    with (
        pytest.raises(InvalidInput, match="exists already"),
        output_file(tmp_path / "a.bin", size=0, overwrite=False),
    ):
        pass
    with output_file(tmp_path / "a.bin", size=0, overwrite=True) as put:
        put(b"new")
    assert (tmp_path / "a.bin").read_bytes() == b"new"


@pytest.fixture
def small_files():
    with no_file_beyond(4096):
        yield


@pytest.mark.usefixtures("small_files")
def test_no_room_is_found_out_before_the_caller_computes(tmp_path: Path):
    (tmp_path / "a.bin").write_bytes(b"old")
    with (
        pytest.raises(WriteFailed, match="nothing was left behind"),
        output_file(tmp_path / "a.bin", size=9999, overwrite=True),
    ):
        pytest.fail("computed although there is no room")
    assert (tmp_path / "a.bin").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.bin"]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_who_may_read_is_up_to_the_umask_or_the_file_that_is_replaced(tmp_path, mask):
    (tmp_path / "old.bin").write_bytes(b"old")
    (tmp_path / "old.bin").chmod(0o640)
    before = os.umask(mask)
    try:
        for name in ("new.bin", "old.bin"):
            with output_file(tmp_path / name, size=3, overwrite=True) as put:
                put(b"new")
        with output_file(tmp_path / "private.bin", size=3, overwrite=True, private=True) as put:
            put(b"new")
        _fill(tmp_path / "folder")
        _fill(tmp_path / "private", private=True)
    finally:
        os.umask(before)
    assert mode(tmp_path / "new.bin") == 0o666 & ~mask
    assert mode(tmp_path / "old.bin") == 0o640
    assert mode(tmp_path / "private.bin") == 0o600
    assert (mode(tmp_path / "folder"), mode(tmp_path / "folder" / "kind.txt")) == (
        0o777 & ~mask,
        0o666 & ~mask,
    )
    assert (mode(tmp_path / "private"), mode(tmp_path / "private" / "kind.txt")) == (0o700, 0o600)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(str(path))


@pytest.mark.parametrize(
    "make",
    [os.mkfifo, _socket, lambda path: path.symlink_to("/dev/null")],
    ids=["pipe", "socket", "device"],
)
@pytest.mark.parametrize("overwrite", [True, False])
def test_a_device_pipe_or_socket_is_never_replaced(tmp_path, make, overwrite, monkeypatch):
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    make(Path("taken"))
    with (
        pytest.raises(InvalidInput, match="is a device, pipe or socket, which is never replaced"),
        output_file("taken", size=0, overwrite=overwrite),
    ):
        pass
    assert os.listdir() == ["taken"]
    with (
        pytest.raises(InvalidInput, match="device, pipe or socket"),
        output_file("/dev/null", size=0, overwrite=overwrite),
    ):
        pass
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_dangling_link_is_something_that_stands_there(tmp_path):
    (tmp_path / "link").symlink_to("nowhere")
    with (
        pytest.raises(InvalidInput, match="exists already"),
        output_file(tmp_path / "link", size=0, overwrite=False),
    ):
        pass


def test_only_plain_files_of_bounded_size_are_read(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"12345")
    assert read_regular(tmp_path / "a.bin", most=5) == b"12345"
    (tmp_path / "link").symlink_to("a.bin")
    os.mkfifo(tmp_path / "pipe")
    for path, message in (
        (tmp_path / "link", "not a plain file"),
        (tmp_path / "pipe", "not a plain file"),
        (tmp_path, "not a plain file"),
        ("/dev/zero", "not a plain file"),
        (tmp_path / "none", "cannot be read"),
        (tmp_path / "no\0name", "cannot be read"),
    ):
        with pytest.raises(InvalidInput, match=message):
            read_regular(path, most=5)
    with pytest.raises(InvalidInput, match="larger than the 4 bytes"):
        read_regular(tmp_path / "a.bin", most=4)


def test_a_file_that_grows_while_it_is_read_is_still_bounded(tmp_path, monkeypatch):
    (tmp_path / "a.bin").write_bytes(b"12345")
    monkeypatch.setattr(
        os,
        "fstat",
        lambda descriptor, real=os.fstat: os.stat_result((*real(descriptor)[:6], 1, 0, 0, 0)),
    )
    with pytest.raises(InvalidInput, match="larger than the 4 bytes"):
        read_regular(tmp_path / "a.bin", most=4)


def test_what_unpacks_too_far_is_refused(tmp_path):
    packed = gzip.compress(bytes(10_000))
    assert unpacked(packed, most=10_000) == bytes(10_000)
    with pytest.raises(UnpacksTooFar, match="more than the 9999 bytes"):
        unpacked(packed, most=9_999)
    with pytest.raises(InvalidInput, match="whole gzip file"):
        unpacked(packed[:-3])
    reader = io.BufferedReader(LimitedReader(gzip.GzipFile(fileobj=io.BytesIO(packed)), most=9_999))
    with pytest.raises(UnpacksTooFar):
        reader.read()
    whole = io.BufferedReader(LimitedReader(gzip.GzipFile(fileobj=io.BytesIO(packed)), most=10_000))
    assert whole.read() == bytes(10_000)


def _fill(path: Path, *, overwrite: bool = False, private: bool = False) -> None:
    with output_folder(path, marker="kind.txt", overwrite=overwrite, private=private) as folder:
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
    with (
        pytest.raises(WriteFailed),
        output_folder(tmp_path / "out", marker="kind.txt", overwrite=True) as folder,
    ):
        folder.write("large.bin", bytes(9999))
    assert (tmp_path / "out" / "kind.txt").read_bytes() == b"mine"
    assert os.listdir(tmp_path) == ["out"]
