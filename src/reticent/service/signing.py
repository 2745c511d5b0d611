"""Signatures of the service: receipts, anchors, and the secret that keys digests of requests."""

from __future__ import annotations

import hashlib
import hmac
import time
from pathlib import Path
from typing import Any

from reticent.core.files import read_regular
from reticent.core.signatures import signature_values, signing_key
from reticent.core.strict_json import strict_dumps
from reticent.ledger.chain import Anchor

_LARGEST = 16384


class Signer:
    """Sign by one private key.

    Args:
        key: file with a private Ed25519 key in PEM, without a password.

    Raises:
        InvalidInput: there is no such key.
        MissingExtra: the package cryptography is not installed.
    """

    def __init__(self, key: str | Path) -> None:
        self._key = signing_key(key)
        content = read_regular(key, most=_LARGEST)
        # One file to give to every host. Digests in the database stay useless to whoever has the
        # database alone.
        self.secret = hmac.new(content, b"reticent digests of requests", hashlib.sha256).digest()

    def receipt(self, stated: dict[str, Any]) -> dict[str, str]:
        """Return the signature of a receipt, as plain values.

        Args:
            stated: result of ``Receipt.to_dict()``.
        """
        return signature_values(strict_dumps(stated), purpose="receipt", key=self._key)

    def anchor(self, anchor: Anchor) -> dict[str, Any]:
        """Return an anchor with the time, and its signature for the purpose "anchor"."""
        stated = {
            "ledger": anchor.ledger,
            "seq": anchor.seq,
            "digest": anchor.digest,
            "epsilon": anchor.epsilon,
            "delta": anchor.delta,
            "at": int(time.time()),
        }
        signature = signature_values(strict_dumps(stated), purpose="anchor", key=self._key)
        return {"anchor": stated, "signature": signature}
