"""The hash chain: every entry of the ledger commits to everything before it."""

from __future__ import annotations

import hashlib
import json
from typing import Literal, NamedTuple

# A positional JSON list of scalars is the canonical form: no key order, no floats. One encoder: making one is the slow part.
_encode = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode

Action = Literal["grant", "reserve", "commit"]


class Entry(NamedTuple):
    """One row of the ledger, with every number and name that it stands for spelled out.

    Attributes:
        seq: position, 1, 2, 3, ...
        at: microseconds since 1970, UTC.
        action: "grant" adds to a budget, "reserve" spends, "commit" ties a reservation to a receipt.
        principal: see ``Scope``; the budget's for a grant, the request's otherwise.
        subject: see ``Scope``.
        bundle: see ``Scope``.
        statement: kind and adjacency of the cost, as canonical JSON.
        epsilon: micro-epsilon granted or spent; 0 for a commit.
        delta: pico-delta granted or spent; 0 for a commit.
        answers: number of answers paid for; 0 for a grant or commit.
        mechanism: what caused the cost; "" for a grant or commit.
        reservation: of a commit, the ``seq`` of what it commits; 0 otherwise.
        receipt: of a commit, the receipt; "" otherwise.
    """

    seq: int
    at: int
    action: Action
    principal: str
    subject: str
    bundle: str
    statement: str
    epsilon: int
    delta: int
    answers: int
    mechanism: str
    reservation: int
    receipt: str

    def digest(self, previous: bytes) -> bytes:
        """SHA-256 of the entry and of the digest before it, 32 bytes."""
        return hashlib.sha256(previous + _encode(self).encode()).digest()


def genesis(ledger: str) -> bytes:
    """The digest before the first entry of the ledger called ``ledger``, 32 bytes."""
    return hashlib.sha256(b"reticent ledger " + ledger.encode()).digest()
