"""The auditor's process: recomputes the guarantee and what was spent, and believes neither side.

It sees what is public (the bundle), what the device shows (an export of its ledger, and what it
sent), and a signed anchor of the server's ledger; no row, and no ledger.

Run as ``python -m reticent.demos.collaboration.auditor URL FOLDER``.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

from reticent.client import Client, Device
from reticent.client.wire import receipt_of
from reticent.core.errors import ReticentError
from reticent.core.files import output_file
from reticent.core.guarantees import Guarantee
from reticent.core.signatures import verify
from reticent.core.strict_json import strict_dumps
from reticent.demos.collaboration.settings import (
    ANCHOR,
    AUDIT_RESULT,
    BUNDLE,
    DEVICE,
    EXPORT,
    KEY_VARIABLE,
    OWNER_KEY,
    RECEIPT_KEY,
    SENT,
)
from reticent.ledger import check_export

_MICRO = 1_000_000


def audit(device: Path, guarantee: Guarantee, bundle: str) -> dict[str, Any]:
    """What an export of a device's ledger shows, and what is wrong with it.

    Args:
        device: folder with the export and what was sent.
        guarantee: of one answer, as the auditor computed it.
        bundle: identity of the bundle that answered.

    Returns:
        ``entries``, ``answers`` that were charged, ``spent`` epsilon in all, ``most`` epsilon of
        any one person, values that were ``sent``, and ``problems``, empty where all is well.
    """
    problems: list[str] = []
    lines = (device / EXPORT).read_text(encoding="utf-8").splitlines()
    try:
        entries = check_export(lines)
    except ReticentError as error:
        return {"problems": [str(error)]}
    granted: defaultdict[str, int] = defaultdict(int)
    spent: defaultdict[str, int] = defaultdict(int)
    answers, last = 0, {}
    cost = Fraction(repr(guarantee.epsilon)) * _MICRO
    for entry in map(json.loads, lines):
        if entry["action"] == "grant":
            granted[entry["subject"]] += entry["epsilon"]
        elif entry["action"] == "reserve":
            spent[entry["subject"]] += entry["epsilon"]
            answers += entry["answers"]
            if entry["epsilon"] < cost * entry["answers"]:
                problems.append(f"entry {entry['seq']} charged less than its answers cost")
            if entry["bundle"] != bundle:
                problems.append(f"entry {entry['seq']} is of another bundle")
        last[entry["seq"]] = entry["digest"]
    problems += [
        f"{name} spent more than was granted"
        for name, amount in spent.items()
        if amount > granted[name]
    ]
    shown = json.loads((device / SENT).read_text(encoding="utf-8"))
    receipts, sent = [receipt_of(one) for one in shown["receipts"]], len(shown["values"])
    for receipt in receipts:
        if receipt.guarantee != guarantee or receipt.bundle != bundle or receipt.seeded:
            problems.append(f"receipt {receipt.identifier} is for something else")
        if last.get(receipt.position) != receipt.digest:
            problems.append(f"receipt {receipt.identifier} is not in the export")
    if sent > sum(receipt.answers for receipt in receipts) or sent > answers:
        problems.append(f"{sent} values were sent, and {answers} answers were charged")
    return {
        "entries": entries,
        "answers": answers,
        "spent": sum(spent.values()) / _MICRO,
        "most": max(spent.values(), default=0) / _MICRO,
        "sent": sent,
        "problems": problems,
    }


def main(url: str, folder: Path) -> None:
    """Audits both sides, and writes what was found.

    Args:
        url: of the service.
        folder: of the demonstration.
    """
    key = os.environ[KEY_VARIABLE]
    with (
        tempfile.TemporaryDirectory() as home,
        Device(
            url,
            key,
            bundle=BUNDLE,
            trusted_key=folder / f"{OWNER_KEY}.pub.pem",
            home=home,
        ) as public,
    ):
        found = audit(folder / DEVICE, public.guarantee, public.bundle)
        found["guarantee"] = public.guarantee.describe()
    with Client(url, key) as client:
        anchored = client.anchor()
    verify(
        strict_dumps(anchored["anchor"]),
        strict_dumps(anchored["signature"]),
        purpose="anchor",
        trusted_key=folder / f"{RECEIPT_KEY}.pub.pem",
    )
    if anchored["anchor"]["epsilon"] != 0:
        found["problems"].append("the server charged something; predictions are free")
    _write(folder / ANCHOR, anchored)
    _write(folder / AUDIT_RESULT, found)


def _write(path: Path, values: object) -> None:
    content = json.dumps(values, indent=1).encode()
    with output_file(path, size=len(content), overwrite=True) as put:
        put(content)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
