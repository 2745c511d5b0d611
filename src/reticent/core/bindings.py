"""Digests by which a receipt binds a request and its answers.

A receipt is shown to auditors, and rows and answers can be guessed. So both digests are keyed: the
request's by a nonce of the client's, the answers' by a fresh salt that is sent to the client alone.
A receipt tells nothing about either to a reader who lacks these.

References:
    - Halevi and Micali (1996), "Practical and provably-secure commitment schemes from
      collision-free hashing", doi:10.1007/3-540-68697-5_16 (commitments by a hash and a fresh key).
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Sequence
from typing import Any

from reticent.core.errors import InvalidInput

_SPELLED = re.compile("[0-9a-f]{32}")
spelled = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode
"""The JSON of answers, as digests and bodies have it. Making an encoder takes as long as a body."""


def request_digest(nonce: str, bundle: str, content: bytes) -> str:
    """Return the digest of a request under its client's nonce, 64 hexadecimal digits.

    Args:
        nonce: 128 bits, as 32 hexadecimal digits.
        bundle: identity of the bundle that is asked, 64 hexadecimal digits.
        content: the body, byte by byte as it is sent.

    Raises:
        InvalidInput: no such nonce.

    Example:
        >>> request_digest("0" * 32, "a" * 64, b"{}")[:8]
        '99c7b105'
    """
    # The identity has a fixed length, so that no two pairs are one text.
    return _keyed(nonce, b"reticent request\0" + bundle.encode() + b"\0", content)


def answers_digest(
    salt: str,
    bundle: str,
    columns: Sequence[str],
    answers: Sequence[Any],
    withheld: Sequence[bool],
) -> str:
    """Return the digest of answers under a salt, 64 hexadecimal digits.

    Args:
        salt: 128 fresh bits, as 32 hexadecimal digits.
        bundle: identity of the bundle that answered.
        columns: names of the released columns.
        answers: a label, a list of numbers or None for each row, as JSON has them.
        withheld: a truth value for each row.

    Raises:
        InvalidInput: no such salt.

    Example:
        >>> args = "a" * 64, ["label"]
        >>> one = answers_digest("0" * 32, *args, ["yes"], [False])
        >>> one == answers_digest("0" * 32, *args, ["no"], [False])
        False
    """
    texts = spelled(list(answers)), spelled(list(withheld))
    return spelled_digest(salt, bundle, columns, *texts)


def spelled_digest(
    salt: str, bundle: str, columns: Sequence[str], answers: str, withheld: str
) -> str:
    """Return ``answers_digest``, of answers and truth values that are ``spelled`` already."""
    content = f"[{spelled(bundle)},{spelled(list(columns))},{answers},{withheld}]"
    return _keyed(salt, b"reticent answers\0", content.encode())


def checked_nonce(value: str, *, name: str) -> str:
    """Return 128 bits in their one spelling.

    Raises:
        InvalidInput: something else.
    """
    if not isinstance(value, str) or not _SPELLED.fullmatch(value):
        raise InvalidInput(f"{name}: expected 32 hexadecimal digits in small letters")
    return value


def _keyed(key: str, head: bytes, content: bytes) -> str:
    digest = hmac.new(bytes.fromhex(checked_nonce(key, name="nonce")), head, "sha256")
    digest.update(content)  # which may be megabytes, and is not copied
    return digest.hexdigest()
