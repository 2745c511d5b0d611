"""Signatures by Ed25519, which show who made a bundle and who answered.

A digest that lies beside its file finds damage and not intent, since anyone who changes the file
can write the digest anew. A signature can only be made with a private key. It deserves as much
trust as the way on which its public key came.
"""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reticent.core.errors import InvalidInput, UntrustedSignature, WriteFailed
from reticent.core.extras import require
from reticent.core.files import read_regular
from reticent.core.releases import Receipt
from reticent.core.strict_json import strict_dumps, strict_loads

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

ALGORITHM = "Ed25519"
_LARGEST_KEY = 16384
_END = b"-----END PUBLIC KEY-----"


def sign(content: bytes, *, purpose: str, key: str | Path | Ed25519PrivateKey) -> bytes:
    """Return a signature of ``content``, as JSON: algorithm, digest of the public key, signature.

    Args:
        content: the signed bytes.
        purpose: kind of the content ("bundle", "receipt"). A signature for one purpose holds for no
            other.
        key: file with a private Ed25519 key in PEM, without a password, or ``signing_key`` of one.

    Raises:
        InvalidInput: no such key.
        MissingExtra: the package cryptography is not installed.
    """
    private = signing_key(key) if isinstance(key, str | Path) else key
    return strict_dumps(signature_values(content, purpose=purpose, key=private))


def signature_values(content: bytes, *, purpose: str, key: Ed25519PrivateKey) -> dict[str, str]:
    """Return the plain values that ``sign`` writes as JSON."""
    return {
        "algorithm": ALGORITHM,
        "key": _name_of_private(key),
        "signature": key.sign(signed_bytes(content, purpose=purpose)).hex(),
    }


def verify(
    content: bytes,
    signature: bytes | None,
    *,
    purpose: str,
    trusted_key: str | Path | Ed25519PublicKey,
) -> None:
    """Raise UntrustedSignature unless ``signature`` is one of ``content`` by ``trusted_key``.

    Args:
        content: the bytes that should be signed.
        signature: the result of ``sign``, or None where there is none.
        purpose: the purpose given to ``sign``.
        trusted_key: file with public Ed25519 keys in PEM, one behind the other, which came on a
            trusted way. A signature by any of them will do. Or one such key.

    Raises:
        UntrustedSignature: no signature, one by another key, or one of something else.
        InvalidInput: no such key.
        MissingExtra: the package cryptography is not installed.
    """
    from_extra = _cryptography()
    keys = _public_keys(trusted_key) if isinstance(trusted_key, str | Path) else [trusted_key]
    trusted = {_name_of(public): public for public in keys}
    names = " or ".join(trusted)
    if signature is None:
        raise UntrustedSignature(f"{purpose}: not signed; expected a signature by {names}")
    try:
        values = strict_loads(signature)
        if set(values) != {"algorithm", "key", "signature"} or values["algorithm"] != ALGORITHM:
            raise InvalidInput("signature")
        stated, value = values["key"], bytes.fromhex(values["signature"])
        if value.hex() != values["signature"]:  # capitals, spaces: one signature has one spelling
            raise InvalidInput("signature")
    except (AttributeError, TypeError, ValueError) as error:
        raise UntrustedSignature(f"{purpose}: its signature is damaged") from error
    if stated not in trusted:
        raise UntrustedSignature(f"{purpose}: signed by another key than the trusted one, {names}")
    try:
        trusted[stated].verify(value, signed_bytes(content, purpose=purpose))
    except from_extra.exceptions.InvalidSignature as error:
        raise UntrustedSignature(f"{purpose}: changed since it was signed") from error


def check_signing_key(key: str | Path) -> None:
    """Raise if ``sign`` could not sign with ``key``. Call it before anything is charged.

    Raises:
        InvalidInput: no such key.
        MissingExtra: the package cryptography is not installed.
    """
    signing_key(key)


def receipt_content(receipt: Receipt) -> bytes:
    """Return a receipt as the JSON that is signed and stored."""
    return strict_dumps(receipt.to_dict())


def sign_receipt(receipt: Receipt, *, key: str | Path | Ed25519PrivateKey) -> bytes:
    """Return a signature of a receipt. Whoever has the public key can tell who answered, at what
    cost, and where it was booked.

    The released values are no part of it. Arguments and errors are those of ``sign``.
    """
    return sign(receipt_content(receipt), purpose="receipt", key=key)


def verify_receipt(receipt: Receipt, signature: bytes | None, *, trusted_key: str | Path) -> None:
    """Raise the errors of ``verify`` unless ``signature`` is one of this receipt by
    ``trusted_key``.
    """
    verify(receipt_content(receipt), signature, purpose="receipt", trusted_key=trusted_key)


def write_key_pair(private: Path, public: Path | None = None, *, sealing: bool = False) -> None:
    """Write a new private key, which its owner alone may read, and its public key.

    Args:
        private: file to make.
        public: file of the public key, by default the same name that ends in ".pub.pem".
        sealing: True for an X25519 key that opens what is sealed, False for an Ed25519 key that
            signs.

    Raises:
        InvalidInput: the private file is there already. A key is never replaced.
        WriteFailed: it cannot be written.
        MissingExtra: the package cryptography is not installed.
    """
    primitives = _cryptography().hazmat.primitives
    forms, kinds = primitives.serialization, primitives.asymmetric
    made = kinds.x25519.X25519PrivateKey if sealing else kinds.ed25519.Ed25519PrivateKey
    key = made.generate()
    pem = forms.Encoding.PEM
    content = key.private_bytes(pem, forms.PrivateFormat.PKCS8, forms.NoEncryption())
    try:
        private.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(private, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        if private.exists():
            raise InvalidInput(
                f"private={str(private)!r}: is there already; a key is never replaced"
            ) from None
        raise WriteFailed(f"{private}: cannot be written ({error.strerror})") from error
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    told = key.public_key().public_bytes(pem, forms.PublicFormat.SubjectPublicKeyInfo)
    (private.with_suffix(".pub.pem") if public is None else public).write_bytes(told)


def signed_bytes(content: bytes, *, purpose: str) -> bytes:
    """Return the bytes that a signature of ``content`` for ``purpose`` is made of."""
    return b"reticent " + purpose.encode() + b"\0" + hashlib.sha256(content).digest()


def _name_of(key: Ed25519PublicKey) -> str:
    """Return the short name of a public key: the first 32 hexadecimal digits of SHA-256 of its 32
    bytes.
    """
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()[:32]


@lru_cache(maxsize=2)  # a service signs each answer, and the public key takes as long as that
def _name_of_private(key: Ed25519PrivateKey) -> str:
    return _name_of(key.public_key())


def signing_key(path: str | Path) -> Ed25519PrivateKey:
    """Return the private key in a file, to sign with many times.

    Raises:
        InvalidInput: no such key.
        MissingExtra: the package cryptography is not installed.
    """
    kind = _cryptography().hazmat.primitives.asymmetric.ed25519.Ed25519PrivateKey
    return _private_key(path, kind, ALGORITHM)  # type: ignore[no-any-return]


def opening_key(path: str | Path) -> X25519PrivateKey:
    """Return the private key in a file that opens what is sealed to it.

    Raises:
        InvalidInput: no such key.
        MissingExtra: the package cryptography is not installed.
    """
    kind = _cryptography().hazmat.primitives.asymmetric.x25519.X25519PrivateKey
    return _private_key(path, kind, "X25519")  # type: ignore[no-any-return]


def _private_key(path: str | Path, kind: Any, algorithm: str) -> Any:
    cryptography, content = _cryptography(), _content(path)
    try:
        key = cryptography.hazmat.primitives.serialization.load_pem_private_key(
            content, password=None
        )
    except (ValueError, TypeError, cryptography.exceptions.UnsupportedAlgorithm) as error:
        raise InvalidInput(
            f"key={str(path)!r}: expected a private {algorithm} key in PEM, without a password"
        ) from error
    if not isinstance(key, kind):
        raise InvalidInput(f"key={str(path)!r}: holds another kind of key; expected {algorithm}")
    return key


def _public_keys(path: str | Path) -> list[Ed25519PublicKey]:
    """Return the public keys in a file, at least one."""
    cryptography, content = _cryptography(), _content(path)
    load = cryptography.hazmat.primitives.serialization.load_pem_public_key
    blocks = [block + _END for block in content.split(_END)[:-1]] or [content]
    try:
        keys = [load(block) for block in blocks]
    except (ValueError, TypeError, cryptography.exceptions.UnsupportedAlgorithm) as error:
        raise InvalidInput(
            f"trusted_key={str(path)!r}: expected public {ALGORITHM} keys in PEM"
        ) from error
    kind = cryptography.hazmat.primitives.asymmetric.ed25519.Ed25519PublicKey
    if not all(isinstance(key, kind) for key in keys):
        raise InvalidInput(
            f"trusted_key={str(path)!r}: holds another kind of key; expected {ALGORITHM}"
        )
    return keys


def _content(path: str | Path) -> bytes:
    try:
        return read_regular(path, most=_LARGEST_KEY)
    except InvalidInput as error:
        raise InvalidInput(f"key={str(path)!r}: {error}") from error


def _cryptography() -> Any:
    require("cryptography.exceptions", extra="signing")
    require("cryptography.hazmat.primitives.asymmetric.ed25519", extra="signing")
    require("cryptography.hazmat.primitives.asymmetric.x25519", extra="signing")
    require("cryptography.hazmat.primitives.serialization", extra="signing")
    return require("cryptography", extra="signing")
