"""Reports sealed to a public key, and enrolment tokens: bytes of fixed lengths."""

from __future__ import annotations

from functools import cache
from secrets import token_bytes
from typing import TYPE_CHECKING, Any

from reticent.core.errors import InvalidInput, MissingExtra, UntrustedSignature
from reticent.core.extras import require
from reticent.core.signatures import signed_bytes
from reticent.fleet.rounds import Round

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

NAME = 16
"""Bytes of the random name of an enrolment."""

TOKEN = NAME + 64
"""Bytes of an enrolment token: a name and an Ed25519 signature."""

_OVERHEAD = 32 + 16
"""Bytes that sealing adds: the encapsulated key and the tag."""

_CODE = 2
"""Bytes of a code. Every code takes as many, or its length would tell it."""

SEALED = _CODE + _OVERHEAD
"""Bytes of a report that is sealed to the aggregator."""

ENVELOPE = TOKEN + SEALED + _OVERHEAD
"""Bytes of a token and a sealed report, sealed together to the shuffler."""

_REPORT, _ENVELOPE = b"reticent report\0", b"reticent envelope\0"
_ENROLMENT = "enrolment"


def seal(content: bytes, *, to: bytes, info: bytes) -> bytes:
    """Return ``content`` sealed to a public key, in the base mode of HPKE.

    The suite is DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, ChaCha20-Poly1305. Each call draws a key
    of its own.

    Args:
        content: the bytes to hide, of any length.
        to: public X25519 key, 32 bytes.
        info: the context. Only ``unseal`` with the same one opens the result.

    Returns:
        The encapsulated key and the ciphertext, 48 bytes more than ``content``.

    Raises:
        InvalidInput: ``to`` is no such key.
        MissingExtra: cryptography 47 or later is not installed.

    References:
        - Barnes, Bhargavan, Lipp and Wood (2022), "Hybrid public key encryption",
          doi:10.17487/RFC9180.
    """
    keys = require("cryptography.hazmat.primitives.asymmetric.x25519", extra="fleet")
    try:
        sealed: bytes = suite().encrypt(content, keys.X25519PublicKey.from_public_bytes(to), info)
    except ValueError as error:
        raise InvalidInput("to: expected a public X25519 key of 32 bytes") from error
    return sealed


def unseal(sealed: bytes, *, key: X25519PrivateKey, info: bytes) -> bytes:
    """Return the content that ``seal`` hid.

    Raises:
        InvalidInput: sealed to another key, in another context, or changed since.
    """
    InvalidTag = require("cryptography.exceptions", extra="fleet").InvalidTag

    try:
        opened: bytes = suite().decrypt(sealed, key, info)
    except (InvalidTag, ValueError) as error:
        raise InvalidInput("sealed: expected bytes sealed to this key in this context") from error
    return opened


@cache
def suite() -> Any:
    """Return the one suite of HPKE.

    Raises:
        MissingExtra: cryptography 47 or later is not installed.
    """
    require("cryptography", extra="fleet")
    try:
        hpke = require("cryptography.hazmat.primitives.hpke", extra="fleet")
    except ImportError as error:
        raise MissingExtra('HPKE is not installed: pip install "cryptography>=47"') from error
    return hpke.Suite(hpke.KEM.X25519, hpke.KDF.HKDF_SHA256, hpke.AEAD.CHACHA20_POLY1305)


def enrolled(round_: Round, *, key: Ed25519PrivateKey, devices: int) -> list[bytes]:
    """Return one token for each device of a round. Each may be spent once.

    Args:
        round_: the round.
        key: the shuffler's signing key.
        devices: number of tokens.
    """
    tokens = []
    for _ in range(devices):
        name = token_bytes(NAME)
        message = signed_bytes(round_.digest + name, purpose=_ENROLMENT)
        tokens.append(name + key.sign(message))
    return tokens


def check_token(token: bytes, round_: Round) -> bytes:
    """Return the name of an enrolment.

    Raises:
        UntrustedSignature: no token of this round by its shuffler.
    """
    InvalidSignature = require("cryptography.exceptions", extra="fleet").InvalidSignature

    name, signature = token[:NAME], token[NAME:]
    try:
        round_.signer_key.verify(signature, signed_bytes(round_.digest + name, purpose=_ENROLMENT))
    except InvalidSignature as error:
        raise UntrustedSignature("token: expected one of this round") from error
    return name


def envelope(code: int, *, token: bytes, round_: Round) -> bytes:
    """Return a code sealed to the aggregator, sealed again with its token to the shuffler.

    Whoever carries it learns neither the token nor the report. So nobody on the way can give the
    token to another report.

    Args:
        code: number of the drawn output, from 0.
        token: enrolment of the device.
        round_: the round that both seals are bound to.

    Returns:
        ``ENVELOPE`` bytes, whatever the code is.
    """
    report = seal(
        code.to_bytes(_CODE, "big"),
        to=bytes.fromhex(round_.aggregator),
        info=_REPORT + round_.digest,
    )
    return seal(token + report, to=bytes.fromhex(round_.shuffler), info=_ENVELOPE + round_.digest)


def opened_envelope(content: bytes, *, key: X25519PrivateKey, round_: Round) -> tuple[bytes, bytes]:
    """Return the name of the enrolment and the sealed report in an envelope.

    Raises:
        InvalidInput: no envelope of this round.
        UntrustedSignature: its token is none of this round.
    """
    inner = unseal(content, key=key, info=_ENVELOPE + round_.digest)
    if len(inner) != TOKEN + SEALED:
        raise InvalidInput("envelope: expected a token and a sealed report")
    return check_token(inner[:TOKEN], round_), inner[TOKEN:]


def opened_report(content: bytes, *, key: X25519PrivateKey, round_: Round) -> int:
    """Return the code in a sealed report.

    Raises:
        InvalidInput: no report of this round, or a code that its bundle does not have.
    """
    code = int.from_bytes(unseal(content, key=key, info=_REPORT + round_.digest), "big")
    if code >= round_.outputs:
        raise InvalidInput(f"report: expected one of {round_.outputs} codes")
    return code
