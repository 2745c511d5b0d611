"""Bodies of answers: JSON whose length depends on the number of rows only."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from secrets import token_hex
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.bindings import spelled, spelled_digest
from reticent.core.releases import Release

_ROUND = 512
"""The part that does not grow with rows is filled up to whole multiples of this."""

_WITHHELD = len("false")
_ANSWERS, _MASK = '"answers":', '"withheld":'


def answer_body(
    release: Release,
    identity: str,
    widest: int,
    *,
    request: str,
    signed: Callable[[dict[str, Any]], dict[str, str]],
) -> bytes:
    """Return the answers as JSON, with the signed receipt that binds them and the request.

    Args:
        release: the release that was drawn.
        identity: the bundle's identity.
        widest: bytes that one answer takes at most.
        request: digest of the request under the client's nonce. The nonce itself is in no body:
            bodies are kept, and whoever reads them could check a guess of the rows.
        signed: function that gives the signature of a receipt's plain values.
    """
    answers = spelled(plain_answers(release.values, release.withheld))
    withheld = spelled(release.withheld.tolist())
    columns, salt = list(release.columns), token_hex(16)
    reply = spelled_digest(salt, identity, columns, answers, withheld)
    receipt = replace(release.receipt, request=request, reply=reply).to_dict()
    head = {
        "bundle": identity,
        "columns": columns,
        "receipt": receipt,
        "salt": salt,
        "signature": signed(receipt),
    }
    return padded(head, answers, withheld, len(release.withheld) * widest_row(widest))


def free_body(values: npt.NDArray[Any], identity: str, widest: int) -> bytes:
    """Return the answers of a model that was paid for at its fit: no receipt, nothing withheld."""
    nobody = dict.fromkeys(("receipt", "salt", "signature"))
    head = {"bundle": identity, "columns": ["label"], **nobody}
    nothing = np.zeros(len(values), dtype=bool)
    texts = spelled(plain_answers(values, nothing)), spelled(nothing.tolist())
    return padded(head, *texts, len(values) * widest_row(widest))


def widest_row(widest: int) -> int:
    """Return the bytes of a row in a body, whose answer takes ``widest`` bytes at most."""
    return widest + 1 + _WITHHELD + 1


def padded(head: dict[str, Any], answers: str, withheld: str, room: int) -> bytes:
    """Return JSON of all parts, padded with white space before its end.

    Args:
        head: members that stand before the answers, at least one.
        answers, withheld: lists as JSON.
        room: bytes of their rows. The length depends on it and on ``head`` only.

    Example:
        >>> answers = "[1]", "[22]", "[null]"
        >>> len({len(padded({"a": 1}, one, "[false]", widest_row(4))) for one in answers})
        1
    """
    start = spelled(head)[:-1]
    content = f"{start},{_ANSWERS}{answers},{_MASK}{withheld}"
    fixed = len(start) + len(_ANSWERS) + len(_MASK) + len(",[],[]}")
    room += _ROUND * math.ceil(fixed / _ROUND)
    return f"{content}{' ' * (room - len(content) - 1)}}}".encode("ascii")


def plain_answers(values: npt.NDArray[Any], withheld: npt.NDArray[np.bool_]) -> list[Any]:
    """Return labels or lists of numbers as JSON has them, with None where withheld."""
    return [
        None if left else value
        for value, left in zip(values.tolist(), withheld.tolist(), strict=True)
    ]


def receipt_of(body: bytes) -> dict[str, Any]:
    """Return the signed receipt in the body of an answer."""
    found = json.loads(body)
    return {"receipt": found["receipt"], "signature": found["signature"]}
