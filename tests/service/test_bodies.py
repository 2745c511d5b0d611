from __future__ import annotations

import json
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reticent.core.bindings import spelled
from reticent.service.bodies import padded, receipt_of, widest_row

HEAD = {"receipt": {"identifier": "0"}, "signature": {"key": "k"}}


def body_of(
    answers: list[Any], withheld: list[bool], widest: int, head: dict[str, Any] = HEAD
) -> bytes:
    return padded(head, spelled(answers), spelled(withheld), len(answers) * widest_row(widest))


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3),
    st.booleans(),
)
def test_vectors_take_the_same_room_whatever_they_are(vector: list[float], left: bool) -> None:
    widest = 3 * 25 + 2  # numbers of up to 24 letters, commas, brackets
    usual = body_of([[0.0] * 3], [False], widest)
    body = body_of([None if left else vector], [left], widest)
    assert len(body) == len(usual)
    found = json.loads(body)
    assert found["answers"] == [None if left else vector]
    assert found["withheld"] == [left]
    assert receipt_of(body) == HEAD


def test_length_grows_with_rows_alone() -> None:
    lengths = [len(body_of([None] * rows, [True] * rows, 30)) for rows in range(1, 40)]
    assert len(set(np.diff(lengths))) == 1
    longer = body_of([None], [True], 30, {**HEAD, "position": 10**9})
    assert len(longer) == lengths[0]  # how many entries a ledger has does not show either
