"""A device and a server that lies: what it is sent is checked, and what it gets is released."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

from reticent.client import Device, Pin
from reticent.core.errors import CorruptBundle, UntrustedSignature
from reticent.release.bundle import Bundle, sign_bundle
from tests.client.relays import Change, relayed
from tests.client.services import Running, key_files
from tests.client.test_device import changed

X = load_iris().data


def test_a_device_takes_a_bundle_and_sends_released_values_only(
    service: Running, tmp_path: Path
) -> None:
    rows = X[:4] + 0.0123456789
    with (
        relayed(service.url, lambda path, content: content) as (url, seen),
        Device(
            url, service.client, bundle="rows", trusted_key=service.bundles_key, home=tmp_path
        ) as device,
    ):
        device.grant("me", epsilon=8 * 4.0, delta=0.0)
        release = device.release(rows, subject="me")
        assert set(device.send(release).tolist()) <= set(load_iris().target_names)
        assert len(device.predict(rows, subject="me", model="species")) == 4
        assert device.budget("me")[0].left_epsilon == 0
    sent = b"".join(seen)
    assert b'"values"' in sent
    assert b"0123456789" not in sent
    values = json.loads(seen[-1].partition(b"HTTP/1.1")[2])["values"]
    assert np.isin(np.array(values), (0.0, 1.0)).all()


def changed_files(folder: Path, key: Path | None, **plan: Any) -> dict[str, bytes]:
    """Files of a bundle with another plan, whose manifest fits; signed by ``key``, if any."""
    target = changed(folder, folder.parent / f"changed-{len(plan)}-{key is None}", **plan)
    if key is not None:
        sign_bundle(target, key=key)
    return {path.name: path.read_bytes() for path in target.iterdir()}


def test_a_server_that_lies_is_not_believed(service: Running, tmp_path: Path) -> None:
    rows = tmp_path / "rows"
    Bundle.read(service.folder / "bundles" / "rows").write(rows)
    stranger, _ = key_files(tmp_path, "stranger")
    files = changed_files(rows, None, epsilon=400.0)
    identity = json.loads(files["manifest.json"])["identity"]

    def everything(path: str, content: bytes) -> bytes | None:
        """Another bundle under its own identity, with a guarantee that fits."""
        if path == "/v1/bundles":
            listed = json.loads(content)
            for entry in listed["bundles"]:
                if entry["name"] == "rows":
                    entry["id"] = identity
                    entry["guarantee"]["epsilon"] = 400.0
            return json.dumps(listed).encode()
        return files.get(path.rpartition("/")[2], None) if "/files/" in path else content

    def card_alone(path: str, content: bytes) -> bytes:
        return content.replace(b"epsilon=4", b"epsilon=1") if path.endswith("card.md") else content

    def unsigned(path: str, content: bytes) -> bytes | None:
        return None if path.endswith("signature.json") else content

    def smaller(path: str, content: bytes) -> bytes:
        """What the list says of the guarantee, and not what the weights say."""
        return content.replace(b'"epsilon":4.0', b'"epsilon":1.0')

    lies: dict[str, tuple[Change, type, str]] = {
        "everything": (everything, UntrustedSignature, "not signed"),
        "card": (card_alone, CorruptBundle, "card.md does not match"),
        "no signature": (unsigned, UntrustedSignature, "not signed"),
        "the list": (smaller, UntrustedSignature, "computed from its weights"),
        "cut short": (
            lambda path, content: content[:-9] if path.endswith("tensors") else content,
            CorruptBundle,
            "weights",
        ),
        "a missing file": (
            lambda path, content: None if path.endswith("bundle.json") else content,
            CorruptBundle,
            "no bundle.json",
        ),
    }
    for name, (lie, error, said) in lies.items():
        home = tmp_path / name
        with relayed(service.url, lie) as (url, _), pytest.raises(error, match=said):
            Device(url, service.client, bundle="rows", trusted_key=service.bundles_key, home=home)
        # only what was signed, and lied about by the list, is kept
        assert len(list((home / "bundles").glob("*"))) == (name == "the list")
    files = changed_files(rows, stranger, epsilon=400.0)
    with relayed(service.url, everything) as (url, _):
        with pytest.raises(UntrustedSignature, match="another key"):
            Device(
                url, service.client, bundle="rows", trusted_key=service.bundles_key, home=tmp_path
            )
        with pytest.raises((UntrustedSignature, CorruptBundle)):
            Device(
                url, service.client, bundle="rows", pin=Pin(fingerprint="ab" * 16), home=tmp_path
            )


def test_another_bundle_of_the_same_owner_is_not_taken_for_the_one_that_was_offered(
    service: Running, tmp_path: Path
) -> None:
    """Both are signed by the owner: a server that swaps them would choose what is protected."""
    signing, public = key_files(tmp_path, "owner")
    rows = tmp_path / "rows"
    Bundle.read(service.folder / "bundles" / "rows").write(rows)
    files = changed_files(rows, signing, epsilon=400.0)

    def swapped(path: str, content: bytes) -> bytes | None:
        return files.get(path.rpartition("/")[2]) if "/files/" in path else content

    with (
        relayed(service.url, swapped) as (url, _),
        pytest.raises(CorruptBundle, match="was offered as"),
    ):
        Device(url, service.client, bundle="rows", trusted_key=public, home=tmp_path / "home")
    assert not list((tmp_path / "home" / "bundles").glob("*"))
