"""CIFAR-10: the stored differences decode, planes stand one below the other, damage is refused."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from reticent.core.errors import DataUnavailable
from reticent.datasets import DATA_VARIABLE, load_cifar10
from reticent.datasets.cifar10 import FILE, _pictures

needs_files = pytest.mark.skipif(
    not os.environ.get(DATA_VARIABLE), reason=f"{DATA_VARIABLE} is not set"
)


def test_decode_inverts_the_differences() -> None:
    colours = np.random.default_rng(0).integers(0, 256, size=(3, 3, 32, 32), dtype=np.uint8)
    planes = colours.copy()
    planes[:, 0] -= colours[:, 1]
    planes[:, 2] -= colours[:, 1]
    rows = np.diff(planes, axis=2, prepend=np.zeros((3, 3, 1, 32), np.uint8))
    coded = np.diff(rows, axis=3, prepend=np.zeros((3, 3, 32, 1), np.uint8))
    decoded = _pictures(coded)
    assert decoded.shape == (3, 96, 32)
    np.testing.assert_array_equal(np.rint(decoded * 255).reshape(3, 3, 32, 32), colours)


@pytest.mark.data
@pytest.mark.slow
@needs_files
def test_real_pictures_are_smooth() -> None:
    data = load_cifar10()
    assert data.train_images.shape == data.test_images.shape == (10000, 96, 32)
    # Neighbouring pixels of a decoded photograph are close, which a wrong decode would destroy.
    planes = data.test_images[:200].reshape(200, 3, 32, 32)
    assert np.abs(np.diff(planes, axis=3)).mean() < 0.08
    assert np.abs(np.diff(planes, axis=2)).mean() < 0.08


def test_missing_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataUnavailable, match=FILE):
        load_cifar10(tmp_path)
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    with pytest.raises(DataUnavailable, match="no folder was named"):
        load_cifar10()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut short", b"no archive"])
def test_damaged_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(DataUnavailable, match="whole npz"):
        load_cifar10(tmp_path)


def test_other_arrays_are_refused(tmp_path: Path) -> None:
    small, labels = np.zeros((4, 3, 32, 32), np.uint8), np.zeros(4, np.uint8)
    np.savez(tmp_path / FILE, train_d2=small, test_d2=small, train_y=labels, test_y=labels)
    with pytest.raises(DataUnavailable, match="known class counts"):
        load_cifar10(tmp_path)
