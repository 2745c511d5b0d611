from __future__ import annotations

import numpy as np
import pytest

from reticent.core.errors import InvalidInput
from reticent.service.requests import (
    Answers,
    Numbers,
    Predictions,
    Preview,
    parsed,
    request_digest,
)


@pytest.mark.parametrize(
    "content",
    [
        b'{"rows": [[false]]}',
        b'{"rows": [[NaN]]}',
        b'{"rows": [[1e999]]}',
        b'{"rows": [[[1]]]}',
        b'{"rows": [1]}',
        b'{"rows": [[]]}',
        b'{"rows": [[1]], "secret-name": 1}',
        b'{"rows": [[1]], "subject": 7}',
        b'{"rows": [[1]], "subject": ""}',
        b"[" * 10_000,
        b'{"rows": [["secret-\xff"]]}',
        b"secret-text",
    ],
)
def test_what_is_refused_is_not_shown(content: bytes) -> None:
    for kind in (Answers, Numbers):
        with pytest.raises(InvalidInput) as caught:
            parsed(content, kind)
        assert "secret" not in str(caught.value)
        assert len(str(caught.value)) < 400


def test_numbers_are_strict_in_every_body() -> None:
    assert parsed(b'{"rows": [[1, 2.5, null, "a"]]}', Answers).rows == [[1.0, 2.5, None, "a"]]
    for cell in ("null", '"1"', "true", "NaN", "1e999", "1" + "0" * 400, "[1]"):
        with pytest.raises(InvalidInput):
            parsed(f'{{"rows": [[1, {cell}]]}}'.encode(), Numbers)
    for content in (b'{"answers": true}', b'{"answers": 1.5}', b'{"answers": "1"}'):
        with pytest.raises(InvalidInput):
            parsed(content, Preview)
    for content in (b'{"values": [[true]]}', b'{"values": [["1"]]}', b'{"values": []}'):
        with pytest.raises(InvalidInput):
            parsed(content, Predictions)


def test_equal_requests_have_equal_digests_and_others_do_not() -> None:
    def digest(text: str, secret: bytes = b"k", bundle: str = "b") -> bytes:
        body = parsed(text.encode(), Answers)
        texts = any(isinstance(cell, str) for row in body.rows for cell in row)
        table = np.array(body.rows, dtype=object if texts else float)
        return request_digest(secret, bundle=bundle, body=body, table=table, bound="")

    plain = digest('{"rows": [[1, 0.5]]}')
    assert digest('{ "rows":[[1.0,5e-1]],"subject":null }') == plain
    others = [
        digest('{"rows": [[1, 0.5000000000000001]]}'),
        digest('{"rows": [[1], [0.5]]}'),
        digest('{"rows": [[1, "0.5"]]}'),
        digest('{"rows": [[1, 0.5]], "subject": "s"}'),
        digest('{"rows": [[1, 0.5]], "subjects": ["s"]}'),
        digest('{"rows": [[1, 0.5]], "columns": ["a", "b"]}'),
        digest('{"rows": [[1, 0.5]]}', secret=b"other"),
        digest('{"rows": [[1, 0.5]]}', bundle="other"),
    ]
    assert len({plain, *others}) == len(others) + 1
    assert len(plain) == 32
