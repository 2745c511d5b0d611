"""JSON with one spelling for every value."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.core.errors import InvalidInput
from reticent.core.strict_json import DEEPEST, LARGEST_INTEGER, strict_dumps, strict_loads

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(PLAIN)
def test_what_is_written_is_read_back(value: Any) -> None:
    try:
        text = strict_dumps(value)
    except InvalidInput:  # a lone surrogate has no bytes
        return
    assert strict_loads(text) == value
    assert strict_dumps(strict_loads(text)) == text
    # What older signatures and digests cover.
    assert text == json.dumps(value, indent=2, sort_keys=True).encode() + b"\n"


@given(
    st.dictionaries(st.text("ab", max_size=3), st.floats(-10, 10), min_size=1, max_size=3),
    st.data(),
)
def test_no_byte_is_without_effect(value: dict[str, float], data: st.DataObject) -> None:
    text = strict_dumps(value)
    place, byte = data.draw(st.integers(0, len(text) - 1)), data.draw(st.integers(0, 255))
    changed = text[:place] + bytes([byte]) + text[place + 1 :]
    try:
        again = strict_loads(changed)
    except InvalidInput:
        return
    assert changed == text or json.dumps(again, sort_keys=True) != json.dumps(value, sort_keys=True)


REFUSED = [
    *(
        b"NaN\n",
        b"Infinity\n",
        b"-Infinity\n",
        b"1e999\n",
        b"1",
        b" 1\n",
        b"1.00\n",
        b"\n",
        b"",
        b"tru\n",
    ),
    *(
        b"9" * 30 + b"\n",
        b"9" * 5000 + b"\n",
        b"[" * 10**6,
        b"\xff\n",
        b'"\\u0061"\n',
        b'"\\ud800"\n',
    ),
    *(b'{"b": 1, "a": 1}\n', b'{\n  "a": 1,\n  "a": 1\n}\n'),
]


@pytest.mark.parametrize("text", REFUSED)
def test_everything_else_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidInput, match="JSON"):
        strict_loads(text)


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, {1, 2}, LARGEST_INTEGER + 1, {"a": [object()]}, "\ud800"]
)
def test_what_could_not_be_read_is_not_written(value: Any) -> None:
    with pytest.raises(InvalidInput, match="JSON"):
        strict_dumps(value)


def test_depth_is_bounded() -> None:
    def nested(levels: int) -> Any:
        return [nested(levels - 1)] if levels else 0

    assert strict_loads(strict_dumps(nested(DEEPEST - 1))) == nested(DEEPEST - 1)
    with pytest.raises(InvalidInput, match="levels of nesting"):
        strict_dumps(nested(DEEPEST))
