"""One door to all data sets; files that are missing, damaged or others are refused by each."""

from __future__ import annotations

import gzip
import hashlib
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from papers.datasets import (
    DATASETS,
    cifar10,
    covertype,
    higgs,
    imdb,
    load,
    load_utkface,
    pneumonia,
    utkface,
)
from papers.datasets.files import DATA_VARIABLE, data_folder, read_idx
from reticent.core.errors import DataUnavailable

BYTES, PARTS = np.uint8, ("train", "val", "test")
SAMPLE = {"X": np.zeros((3, 28)), "y": np.zeros(3), "src": np.zeros(3), "feature_names": ["a"] * 28}
OTHERS: dict[str, tuple[Callable[[Path], Any], str, dict[str, Any]]] = {
    "cifar10": (
        cifar10.load_cifar10,
        cifar10.FILE,
        {f"{part}_d2": np.zeros((4, 3, 32, 32), BYTES) for part in ("train", "test")}
        | {f"{part}_y": np.zeros(4, BYTES) for part in ("train", "test")},
    ),
    "utkface": (
        load_utkface,
        utkface.FILE,
        {"X_d2": np.zeros((4, 64, 64), BYTES), "gender": np.zeros(4, BYTES), "stamp": np.arange(4)},
    ),
    "covertype": (
        covertype.load_covertype,
        covertype.FILE,
        {"X": np.zeros((70, 54), np.int16), "y": np.ones(70, BYTES)},
    ),
    "higgs": (higgs.load_higgs, higgs.UCI_FILE, SAMPLE),
    "atlas": (higgs.load_atlas, higgs.ATLAS_FILE, SAMPLE),
    "imdb": (
        imdb.load_imdb,
        imdb.FILE,
        {"X": np.zeros((3, 384), np.float16), "y": np.zeros(3, BYTES)},
    ),
    "pneumonia": (
        pneumonia.load_pneumonia,
        pneumonia.FILE,
        {f"{part}_images": np.zeros((2, 28, 28), BYTES) for part in PARTS}
        | {f"{part}_labels": np.zeros((2, 1), BYTES) for part in PARTS},
    ),
}


@pytest.mark.parametrize("name", DATASETS[1:])
def test_every_file_loader_is_reached(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataUnavailable, match=name):
        load(name, folder=tmp_path)


@pytest.mark.parametrize("name", OTHERS)
def test_missing_damaged_and_other_files_are_refused(name: str, tmp_path: Path) -> None:
    read, file, arrays = OTHERS[name]
    with pytest.raises(DataUnavailable, match=file):
        read(tmp_path)
    for content in (b"", b"PK\x03\x04 cut short", b"no archive"):
        (tmp_path / file).write_bytes(content)
        with pytest.raises(DataUnavailable, match="whole npz"):
            read(tmp_path)
    np.savez(tmp_path / file, **arrays)
    with pytest.raises(DataUnavailable, match="expected"):
        read(tmp_path)


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
