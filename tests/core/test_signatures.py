"""Signatures hold for what was signed, for one purpose, by one key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from reticent.core import AddRemove, Guarantee, Receipt
from reticent.core.errors import CorruptBundle, InvalidInput, UntrustedSignature
from reticent.core.signatures import sign, sign_receipt, verify, verify_receipt, write_key_pair
from reticent.core.strict_json import strict_dumps, strict_loads
from reticent.release.bundle import Bundle, sign_bundle

RECEIPT = Receipt("m", Guarantee(1.0, 0.0, AddRemove()), 3, "", "none", "s", seeded=False)


def key_pair(folder: Path, name: str) -> tuple[Path, Path]:
    write_key_pair(folder / f"{name}.pem")
    return folder / f"{name}.pem", folder / f"{name}.pub.pem"


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    return key_pair(tmp_path, "mine")


def test_a_signature_holds_for_its_content_purpose_and_key(
    keys: tuple[Path, Path], tmp_path: Path
) -> None:
    private, public = keys
    signature = sign(b"content", purpose="bundle", key=private)
    verify(b"content", signature, purpose="bundle", trusted_key=public)
    with pytest.raises(UntrustedSignature, match="changed since it was signed"):
        verify(b"Content", signature, purpose="bundle", trusted_key=public)
    with pytest.raises(UntrustedSignature, match="changed since it was signed"):
        verify(b"content", signature, purpose="receipt", trusted_key=public)
    with pytest.raises(UntrustedSignature, match="signed by another key"):
        verify(b"content", signature, purpose="bundle", trusted_key=key_pair(tmp_path, "other")[1])
    with pytest.raises(UntrustedSignature, match="not signed"):
        verify(b"content", None, purpose="bundle", trusted_key=public)


def test_any_of_several_trusted_keys_will_do(keys: tuple[Path, Path], tmp_path: Path) -> None:
    """An old key and a new one are trusted while the one replaces the other."""
    both = tmp_path / "both.pem"
    both.write_bytes(key_pair(tmp_path, "old")[1].read_bytes() + keys[1].read_bytes())
    for name in ("old", "mine"):
        signature = sign(b"content", purpose="receipt", key=tmp_path / f"{name}.pem")
        verify(b"content", signature, purpose="receipt", trusted_key=both)
    signature = sign(b"content", purpose="receipt", key=key_pair(tmp_path, "third")[0])
    with pytest.raises(UntrustedSignature, match="another key"):
        verify(b"content", signature, purpose="receipt", trusted_key=both)


@pytest.mark.parametrize(
    "spell", [str.upper, lambda text: f" {text}", lambda text: text[:64] + " " + text[64:]]
)
def test_a_signature_has_one_spelling(keys: tuple[Path, Path], spell: Callable[[str], str]) -> None:
    values = strict_loads(sign(b"content", purpose="receipt", key=keys[0]))
    spelled = strict_dumps({**values, "signature": spell(values["signature"])})
    with pytest.raises(UntrustedSignature, match="damaged"):
        verify(b"content", spelled, purpose="receipt", trusted_key=keys[1])


def test_a_signature_that_claims_another_key_does_not_pass(
    keys: tuple[Path, Path], tmp_path: Path
) -> None:
    private, _ = key_pair(tmp_path, "other")
    mine = strict_loads(sign(b"content", purpose="bundle", key=keys[0]))
    forged = strict_loads(sign(b"content", purpose="bundle", key=private))
    with pytest.raises(UntrustedSignature, match="changed since it was signed"):
        verify(
            b"content",
            strict_dumps({**forged, "key": mine["key"]}),
            purpose="bundle",
            trusted_key=keys[1],
        )


@pytest.mark.parametrize(
    "damage",
    [
        lambda signature: signature[:-2],
        lambda signature: b"",
        lambda signature: b"[]\n",
        lambda signature: strict_dumps({**strict_loads(signature), "algorithm": "none"}),
        lambda signature: strict_dumps({**strict_loads(signature), "signature": "xyz"}),
        lambda signature: strict_dumps({**strict_loads(signature), "signature": ""}),
        lambda signature: strict_dumps({**strict_loads(signature), "signature": 3}),
        lambda signature: strict_dumps({**strict_loads(signature), "more": 1}),
    ],
)
def test_a_damaged_signature_is_none(keys: tuple[Path, Path], damage) -> None:
    signature = sign(b"content", purpose="bundle", key=keys[0])
    with pytest.raises(UntrustedSignature):
        verify(b"content", damage(signature), purpose="bundle", trusted_key=keys[1])


def test_keys_of_another_kind_are_refused(keys: tuple[Path, Path], tmp_path: Path) -> None:
    curve = ec.generate_private_key(ec.SECP256R1())
    (tmp_path / "ec.pem").write_bytes(
        curve.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    (tmp_path / "text.pem").write_text("not a key")
    for wrong, message in (
        (keys[1], "private Ed25519"),
        ("ec.pem", "another kind"),
        ("text.pem", "PEM"),
        ("none.pem", "cannot be"),
    ):
        with pytest.raises(InvalidInput, match=message):
            sign(b"", purpose="bundle", key=tmp_path / wrong)
    with pytest.raises(InvalidInput, match="public Ed25519"):
        verify(b"", None, purpose="bundle", trusted_key=keys[0])
    with pytest.raises(InvalidInput, match="not a plain file"):
        sign(b"", purpose="bundle", key="/dev/zero")


def test_an_edited_bundle_with_a_manifest_of_its_own_is_found(
    keys: tuple[Path, Path], tmp_path: Path
) -> None:
    bundle = Bundle("Nothing", {"epsilon": 0.5}, {"w": np.zeros(2)}, "# card\n")
    folder = bundle.write(tmp_path / "bundle")
    with pytest.raises(UntrustedSignature, match="not signed"):
        Bundle.read(folder, trusted_key=keys[1])
    signature = sign_bundle(folder, key=keys[0])
    assert Bundle.read(folder, trusted_key=keys[1]).identity == bundle.identity
    edited = replace(bundle, settings={"epsilon": 50.0}).write(tmp_path / "edited")
    assert Bundle.read(edited).settings == {"epsilon": 50.0}  # no checksum can tell
    (edited / signature.name).write_bytes(signature.read_bytes())
    with pytest.raises(UntrustedSignature, match="changed since it was signed"):
        Bundle.read(edited, trusted_key=keys[1])
    (folder / "card.md").write_text("# another card\n")
    with pytest.raises(CorruptBundle):
        Bundle.read(folder, trusted_key=keys[1])


def test_a_private_bundle_stays_private_when_it_is_signed(
    keys: tuple[Path, Path], tmp_path: Path
) -> None:
    folder = Bundle("Nothing", {}, {"w": np.zeros(2)}, "", serial="1a2b").write(tmp_path / "bundle")
    assert sign_bundle(folder, key=keys[0]).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("mechanism", "n"),
        ("guarantee", Guarantee(1.0, 1e-9, AddRemove())),
        ("guarantee", Guarantee(1.0, 0.0, AddRemove(data_set="ward 7"))),
        ("answers", 4),
        ("bundle", "b"),
        ("certificate", "interval"),
        ("sampler", "t"),
        ("seeded", True),
        ("booked", "ledger/2"),
        ("position", 2),
        ("digest", "00" * 32),
        ("identifier", "f" * 16),
    ],
)
def test_a_signed_receipt_binds_each_of_its_fields(
    keys: tuple[Path, Path], field: str, other: object
) -> None:
    private, public = keys
    booked = replace(RECEIPT, booked="ledger/1", position=1, digest="ff" * 32)
    signature = sign_receipt(booked, key=private)
    verify_receipt(booked, signature, trusted_key=public)
    changed = replace(booked, **{field: other})  # type: ignore[arg-type]
    with pytest.raises(UntrustedSignature, match="changed since it was signed"):
        verify_receipt(changed, signature, trusted_key=public)
