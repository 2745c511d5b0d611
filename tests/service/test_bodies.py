from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reticent.service.bodies import padded, receipt_of

HEAD = {"receipt": {"identifier": "0"}, "signature": {"key": "k"}}


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3),
    st.booleans(),
)
def test_vectors_take_the_same_room_whatever_they_are(vector: list[float], left: bool) -> None:
    widest = 3 * 25 + 2  # numbers of up to 24 letters, commas, brackets
    usual = padded(HEAD, [[0.0] * 3], [False], widest)
    body = padded(HEAD, [None if left else vector], [left], widest)
    assert len(body) == len(usual)
    found = json.loads(body)
    assert found["answers"] == [None if left else vector]
    assert found["withheld"] == [left]
    assert receipt_of(body) == HEAD


def test_length_grows_with_rows_alone() -> None:
    lengths = [len(padded(HEAD, [None] * rows, [True] * rows, 30)) for rows in range(1, 40)]
    assert len(set(np.diff(lengths))) == 1
    longer = padded({**HEAD, "position": 10**9}, [None], [True], 30)
    assert len(longer) == lengths[0]  # how many entries a ledger has does not show either
