"""An auditor: what was spent, from an export of the ledger and signed anchors alone.

It imports nothing of the library, and reads three things: the lines of an export, anchors as
clients have kept them, and the public key of the service. It checks that the entries are a chain,
that every anchor names an entry of it, with the sums that they have there, and adds up who has
spent what.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

FIELDS = (
    *("seq", "at", "action", "principal", "subject", "bundle", "statement", "epsilon", "delta"),
    *("answers", "mechanism", "reservation", "receipt"),
)


class Refuted(Exception):
    """The export or an anchor is not what it should be."""


@dataclass
class Spent:
    """What one subject has spent, and was granted.

    Attributes:
        epsilon, delta: micro-epsilon and pico-delta of all charges.
        granted: micro-epsilon of all grants to the subject alone.
        answers: paid for.
        open: charges without a receipt.
    """

    epsilon: int = 0
    delta: int = 0
    granted: int = 0
    answers: int = 0
    open: set[int] = field(default_factory=set)


def audit(
    lines: Iterable[str], anchors: Iterable[dict[str, Any]], key: Ed25519PublicKey
) -> dict[str, Spent]:
    """Spending by subject.

    Raises:
        Refuted: an entry was changed, dropped, moved or repeated, a charge is above its grant, or
            an anchor is not signed, or names what is not there.
    """
    digests: dict[int, str] = {}
    totals: dict[int, tuple[int, int]] = {}
    spent: defaultdict[str, Spent] = defaultdict(Spent)
    charges: dict[int, str] = {}
    epsilon = delta = last = 0
    previous = ""
    for line in lines:
        entry = json.loads(line)
        content = [entry[name] for name in FIELDS]
        before, digest = entry["previous"], entry["digest"]
        if last and (before != previous or entry["seq"] != last + 1):
            raise Refuted(f"entry {entry['seq']}: does not follow entry {last}")
        text = json.dumps(content, separators=(",", ":"))
        link = hashlib.sha256(bytes.fromhex(before) + text.encode()).digest()
        if hashlib.sha256(link + bytes.fromhex(entry["state"])).hexdigest() != digest:
            raise Refuted(f"entry {entry['seq']}: does not match its digest")
        if entry["action"] == "accept":  # what lost entries cost
            epsilon, delta = epsilon + entry["epsilon"], delta + entry["delta"]
        one = spent[entry["subject"]]
        if entry["action"] == "grant":
            one.granted += entry["epsilon"] * (-1 if entry["mechanism"] == "lowered" else 1)
        elif entry["action"] == "reserve":
            one.epsilon += entry["epsilon"]
            one.delta += entry["delta"]
            one.answers += entry["answers"]
            one.open.add(entry["seq"])
            charges[entry["seq"]] = entry["subject"]
            epsilon, delta = epsilon + entry["epsilon"], delta + entry["delta"]
            if one.epsilon > one.granted:
                raise Refuted(f"entry {entry['seq']}: spends more than was granted")
        elif entry["action"] == "commit":
            subject = charges.get(entry["reservation"])
            if subject is None or entry["reservation"] not in spent[subject].open:
                raise Refuted(f"entry {entry['seq']}: a receipt of no open charge")
            spent[subject].open.discard(entry["reservation"])
        last, previous = entry["seq"], digest
        digests[last], totals[last] = digest, (epsilon, delta)
    for signed in anchors:
        anchor, signature = signed["anchor"], signed["signature"]
        content = json.dumps(anchor, indent=2, sort_keys=True).encode() + b"\n"
        message = b"reticent anchor\0" + hashlib.sha256(content).digest()
        try:
            key.verify(bytes.fromhex(signature["signature"]), message)
        except InvalidSignature:
            raise Refuted("anchor: not signed by the service") from None
        at = anchor["seq"]
        if at and digests.get(at) != anchor["digest"]:
            raise Refuted(f"anchor {at}: names an entry that the export does not have")
        if at and totals[at] != (anchor["epsilon"], anchor["delta"]):
            raise Refuted(f"anchor {at}: the charges before it add up to something else")
    return dict(spent)
