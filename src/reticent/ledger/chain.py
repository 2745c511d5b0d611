"""The hash chain: every entry of the ledger commits to everything before it."""

from __future__ import annotations

import hashlib
import json
from typing import Literal, NamedTuple

# A positional JSON list of scalars is the canonical form: no key order, no floats. One encoder:
# making one is the slow part.
_encode = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode

Action = Literal["grant", "reserve", "commit", "policy", "gap", "accept"]
"""What an entry does.

``grant`` adds to a budget; ``reserve`` spends; ``commit`` ties a reservation to a receipt.
``policy`` says what requests must name. ``accept`` says that an operator goes on with an older
copy: it takes a position after the lost entries, so that no two entries ever have one position,
and names the lost end of the chain. ``gap`` charges a budget for what the lost entries may have
spent.
"""


class Entry(NamedTuple):
    """One row of the ledger, with every number and name that it stands for spelled out.

    Attributes:
        seq: position, 1, 2, 3, ...; only "accept" leaves some out.
        at: microseconds since 1970, UTC.
        action: see ``Action``.
        principal: see ``Scope``; the budget's for a grant or gap, the request's for a reserve or
            commit, "" otherwise.
        subject: see ``Scope``.
        bundle: see ``Scope``.
        statement: kind and adjacency of the cost, as canonical JSON; "" for a policy or accept.
        epsilon: micro-epsilon granted or spent; of an accept, what every later budget starts with;
            0 for a commit or policy.
        delta: the same in pico-delta.
        answers: number of answers paid for; 0 for all but a reserve.
        mechanism: of a reserve, what caused the cost; of a policy, the required parts; ""
            otherwise.
        reservation: of a commit, the ``seq`` of what it commits; 0 otherwise.
        receipt: of a commit, the receipt; of an accept, the anchor of the lost end, as
            "position:digest"; "" otherwise.
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


def genesis(ledger: str, required: str) -> bytes:
    """The digest before the first entry of a ledger, 32 bytes.

    Args:
        ledger: its name.
        required: what its first policy required, as ``Policy.text``.
    """
    requires = f" requires {required}" if required else ""
    return hashlib.sha256(f"reticent ledger {ledger}{requires}".encode()).digest()
