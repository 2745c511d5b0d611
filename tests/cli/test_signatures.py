"""sign and verify, and commands that insist on a key."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from reticent.core.signatures import write_key_pair


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    write_key_pair(tmp_path / "key.pem")
    return tmp_path / "key.pem", tmp_path / "key.pub.pem"


@pytest.fixture
def bundle(labels_bundle: Path, tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", np.full((3, 4), 2.0))
    return Path(shutil.copytree(labels_bundle, tmp_path / "bundle"))


def test_a_signed_bundle_answers_and_its_receipt_can_be_verified(command, bundle, keys, tmp_path):
    words = ("release", bundle, "--input", tmp_path / "x.npy", "--trusted-key", keys[1])
    unsigned = command(*words, "--output", tmp_path / "a.npz")
    assert unsigned.status == 18
    assert "not signed" in unsigned.err
    assert not (tmp_path / "a.npz").exists()
    assert command("sign", bundle, "--signing-key", keys[0]).status == 0
    assert command(*words, "--output", tmp_path / "a.npz", "--signing-key", keys[0]).status == 0
    for path in (bundle, tmp_path / "a.npz"):
        assert "signed by the trusted key" in command("verify", path, "--trusted-key", keys[1]).out
    assert command("card", bundle, "--trusted-key", keys[1]).status == 0
    with np.load(tmp_path / "a.npz") as stored:
        arrays = {name: stored[name] for name in stored.files}
    assert json.loads(arrays["receipt"].tobytes())["answers"] == 3
    changed = arrays["receipt"].tobytes().replace(b'"answers": 3', b'"answers": 2')
    np.savez(tmp_path / "b.npz", **{**arrays, "receipt": np.frombuffer(changed, np.uint8)})
    answer = command("verify", tmp_path / "b.npz", "--trusted-key", keys[1])
    assert answer.status == 18
    assert "changed since it was signed" in answer.err


def test_a_key_that_cannot_sign_is_found_before_anything_is_answered(
    command, bundle, keys, tmp_path
):
    answer = command(
        "release",
        bundle,
        "--input",
        tmp_path / "x.npy",
        "--output",
        tmp_path / "a.npz",
        "--signing-key",
        keys[1],
    )
    assert answer.status == 2
    assert "private Ed25519 key" in answer.err
    assert not (tmp_path / "a.npz").exists()
