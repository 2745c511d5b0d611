"""Files that are not the expected ones are refused with a message that says so."""

from __future__ import annotations

import gzip
import hashlib
import struct
from pathlib import Path

import numpy as np
import pytest

from papers.datasets.files import DATA_VARIABLE, data_folder, read_idx
from reticent.core.errors import DataUnavailable

VALUES = np.arange(24, dtype=np.uint8)
GOOD = struct.pack(">4B3I", 0, 0, 8, 3, 2, 3, 4) + VALUES.tobytes()
DIGEST = hashlib.sha256(GOOD).hexdigest()


def test_whole_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(GOOD))
    np.testing.assert_array_equal(read_idx(path, sha256=DIGEST), VALUES.reshape(2, 3, 4))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "idx file"),
        (b"not gzip", "whole gzip file"),
        (gzip.compress(GOOD)[:-9], "whole gzip file"),
        (gzip.compress(b"\x00\x00\x0d\x03" + GOOD[4:]), "unsigned bytes"),
        (gzip.compress(GOOD[:10]), "header of 16 bytes"),
        (gzip.compress(GOOD[:-1]), "24 values"),
        (gzip.compress(GOOD[:-1] + b"\x00"), "sha256="),
    ],
    ids=["empty", "not gzip", "cut", "floats", "header", "short", "other bytes"],
)
def test_damaged_file_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(content)
    with pytest.raises(DataUnavailable, match=message):
        read_idx(path, sha256=DIGEST)


def test_folder_by_argument_by_variable_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    assert data_folder(None) is None
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    assert data_folder(None) == tmp_path
    with pytest.raises(DataUnavailable, match="folder="):
        data_folder(tmp_path / "absent")
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / "absent"))
    with pytest.raises(DataUnavailable, match=DATA_VARIABLE):
        data_folder(None)
