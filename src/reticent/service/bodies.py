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

from reticent.core.bindings import answers_digest
from reticent.core.releases import Release

_ROUND = 512
"""The part that does not grow with rows is filled up to whole multiples of this."""

_WITHHELD = len("false")
_ANSWERS, _MASK = b'"answers":', b'"withheld":'
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
"""One encoder: making one takes as long as encoding a short body."""


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
    answers, withheld = plain_answers(release.values, release.withheld), release.withheld.tolist()
    columns, salt = list(release.columns), token_hex(16)
    reply = answers_digest(salt, identity, columns, answers, withheld)
    receipt = replace(release.receipt, request=request, reply=reply).to_dict()
    head = {
        "bundle": identity,
        "columns": columns,
        "receipt": receipt,
        "salt": salt,
        "signature": signed(receipt),
    }
    return padded(head, answers, withheld, widest)


def free_body(values: npt.NDArray[Any], identity: str, widest: int) -> bytes:
    """Return the answers of a model that was paid for at its fit: no receipt, nothing withheld."""
    nobody = dict.fromkeys(("receipt", "salt", "signature"))
    head = {"bundle": identity, "columns": ["label"], **nobody}
    nothing = np.zeros(len(values), dtype=bool)
    return padded(head, plain_answers(values, nothing), nothing.tolist(), widest)


def padded(head: dict[str, Any], answers: list[Any], withheld: list[bool], widest: int) -> bytes:
    """Return JSON of all parts, padded with white space before its end.

    Its length depends on ``head`` and the number of rows only. ``head`` is not empty.

    Example:
        >>> lengths = {len(padded({"a": 1}, [label], [False], 4)) for label in (1, 22, None)}
        >>> len(lengths)
        1
    """
    start = _dumps(head)[:-1]
    content = b"%b,%b%b,%b%b" % (start, _ANSWERS, _dumps(answers), _MASK, _dumps(withheld))
    fixed = len(start) + len(_ANSWERS) + len(_MASK) + len(",[],[]}")
    room = _ROUND * math.ceil(fixed / _ROUND) + len(answers) * (widest + 1 + _WITHHELD + 1)
    return content + b" " * (room - len(content) - 1) + b"}"


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


def _dumps(value: Any) -> bytes:
    return _encode(value).encode()
