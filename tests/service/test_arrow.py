"""A body of Arrow asks what the same rows ask as JSON, and a spoilt one asks nothing."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pytest

from reticent.client import Client
from reticent.client.wire import arrow_bytes, arrow_columns
from reticent.core.arrow_bodies import ARROW
from reticent.core.errors import InvalidInput, NotPermitted
from reticent.service.answering import Asked
from reticent.service.arrow import _BATCH, _SCHEMA, _kept_fields, _message, arrow_rows
from reticent.service.core import Service
from reticent.service.requests import Answers, Numbers, parsed
from tests.service.conftest import RECORDS, Place

pa = pytest.importorskip("pyarrow")

ROWS = np.array([[0.3, 0.25], [-0.3, -0.2], [0.1, -0.0]])
PATH = "/v1/bundles/{}/answers"
SUBJECTS = ["patient-1", "patient-2", "patient-1"]


def stream(table: Any, **options: Any) -> bytes:
    sink = io.BytesIO()
    chosen = pa.ipc.IpcWriteOptions(**options)
    with pa.ipc.new_stream(sink, table.schema, options=chosen) as writer:
        writer.write_table(table)
    return sink.getvalue()


def named(**columns: Any) -> Any:
    return pa.table({name: pa.array(*column) for name, column in columns.items()})


def stub(width: int, schema: Any = "mixed") -> Any:
    """A bundle as ``arrow_rows`` looks at it."""
    asks = Numbers if schema is None else Answers
    system = SimpleNamespace(n_features_in_=width)
    return SimpleNamespace(system=system, schema=schema, columns=[], asks=asks)


def read(content: bytes, bundle: Any, most: int = 10) -> Answers:
    return arrow_rows(content, bundle=bundle, most=most)


def body(rows: Any = ROWS, **about: Any) -> bytes:
    return arrow_bytes(arrow_columns(rows)[0], (), about)


@pytest.mark.parametrize("about", [{}, {"subject": "patient-1"}, {"subjects": SUBJECTS}])
def test_the_same_rows_are_one_request(
    place: Place, serve_here: Callable[..., httpx.Client], about: dict[str, Any]
) -> None:
    """Whoever repeats a request as the other body gets the stored bytes, and pays once."""
    client = serve_here(place.settings())
    bundle, subject = ("curated", "patient-1") if about else ("labels", RECORDS)
    whose = {"Authorization": f"Bearer {place.secret}", "Idempotency-Key": "request-1"}

    def ask(content: bytes, kind: str = ARROW) -> httpx.Response:
        headers = whose | {"Content-Type": kind}
        return client.post(PATH.format(bundle), content=content, headers=headers)

    first = ask(json.dumps({"rows": ROWS.tolist(), **about}).encode(), "application/json")
    paid = place.spent(subject)
    again = ask(body(**about))
    assert (first.status_code, again.status_code) == (200, 200), again.text
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.content == first.content
    for other in (body(ROWS + 0.0, **about), body(np.nextafter(ROWS, 1.0), **about), body()[:-9]):
        refused = ask(other)
        assert refused.status_code == 422
        assert refused.headers["Content-Type"] == "application/problem+json"
    assert ask(body(), "text/plain").status_code == 415
    assert place.spent(subject) == paid > 0


def test_the_client_pays_the_same_for_either(
    place: Place, serve_here: Callable[..., httpx.Client]
) -> None:
    url = str(serve_here(place.settings()).base_url)
    spent = []
    for arrow in (False, True):
        with Client(url, place.secret, trusted_key=place.public_key, arrow=arrow) as client:
            found = client.answers(ROWS, bundle="curated", subject=SUBJECTS, rows_per_request=2)
        assert len(found.values) == len(ROWS)
        assert len(found.receipts) == 2
        spent.append([place.spent(name) for name in SUBJECTS])
    assert np.array_equal(np.array(spent[1]), 2 * np.array(spent[0]))


def test_mixed_cells_are_those_of_json() -> None:
    table = named(
        whole=([1, None, 2**53 + 1], pa.int64()),
        byte=([0, 255, 7], pa.uint8()),
        half=([0.5, -1.5, None], pa.float16()),
        truth=([True, None, False], pa.bool_()),
        text=(["x", None, "yé\0"], pa.string()),
        large=(["", "z" * 10_000, None], pa.large_string()),
    )
    table = table.replace_schema_metadata({"reticent": '{"subject": "p"}', "pandas": "{}"})
    cells = [[cell.as_py() for cell in column] for column in table.columns]
    cells[3] = [1, None, 0]
    told = {"rows": list(zip(*cells, strict=True)), "columns": table.column_names, "subject": "p"}
    assert read(stream(table), stub(6)) == parsed(json.dumps(told).encode(), Answers)
    assert read(stream(table.slice(1, 2)), stub(6)).rows == read(stream(table), stub(6)).rows[1:]


def test_columns_are_kept_for_the_next_request_and_no_subject_is() -> None:
    bundle, sizes = stub(ROWS.shape[1], None), []
    _kept_fields.cache_clear()
    for about in ({"subject": "patient-1"}, {}, {}, {"subjects": SUBJECTS}):
        assert read(body(**about), bundle).rows.tolist() == ROWS.tolist()
        sizes.append(_kept_fields.cache_info().currsize)
    assert sizes == [0, 1, 1, 1]


def test_names_are_those_of_a_bundle_that_has_some() -> None:
    table = named(b=([1.0],), a=([2.0],))
    fitted = stub(2, None)
    assert read(stream(table), fitted).columns == ["b", "a"]
    assert read(body([[1.0, 2.0]]), fitted).columns is None
    fitted.system.feature_names_in_ = np.array(["x1", "x0"], dtype=object)
    assert read(body([[1.0, 2.0]]), fitted).columns == ["x0", "x1"]


def categories() -> Any:
    return named(a=([1.0],), b=(["secret"],)).set_column(
        1, "b", pa.array(["secret"]).dictionary_encode()
    )


def _moved(column: int, by: int) -> bytes:
    """A stream whose values of ``column`` begin elsewhere in its body."""
    content = bytearray(stream(named(a=([1.0, 2.0],), b=(["secret", "b"],))))
    place = _message(bytes(content), 0, _SCHEMA)[2]
    batch, _, _ = _message(bytes(content), place, _BATCH)
    at = content.index(batch.data) + batch.vector(2, 16)[0] + 16 * column
    moved = int.from_bytes(content[at : at + 8], "little") + by
    content[at : at + 8] = moved.to_bytes(8, "little", signed=True)
    return bytes(content)


@pytest.mark.parametrize(
    "content",
    [
        stream(named(a=([1.0],), b=([2.0],)), compression="lz4"),
        stream(named(a=([1.0],), b=(["secret"],)), compression="zstd"),
        stream(categories()),
        stream(named(a=([1.0],), b=([["secret"]],))),
        stream(named(a=([1.0],), b=([None], pa.null()))),
        stream(named(a=([1.0],), b=(["secret"], pa.string_view()))),
        stream(named(a=([1.0],), b=([b"secret"],))),
        stream(named(a=([1.0],), b=([0], pa.date32()))),
        stream(named(a=([1.0],), b=(["secret"], pa.json_()))),
        stream(named(a=([1.0],), b=(["secret" * 2000],))),
        stream(named(a=([1.0],), b=([float("nan")],))),
        stream(named(a=([1.0],), b=([float("inf")],))),
        stream(named(a=([1.0],))),
        stream(named(a=([], pa.float64()), b=([], pa.float64()))),
        stream(named(a=([1.0] * 11,), b=([2.0] * 11,))),
        stream(pa.concat_tables([named(a=([1.0],), b=([2.0],))] * 2)),
        stream(named(a=([1.0],), b=([2.0],))) + b"secret",
        body([[1.0, 2.0]], secret="s"),
        body([[1.0, 2.0]]).replace(b"x1", b"\xff\xff"),
        _moved(1, -8),
        _moved(1, 8),
        _moved(3, -16),
        _moved(4, -8),
        _moved(4, 2**40),
        b"",
        b"secret",
    ],
)
def test_what_is_not_taken_is_refused_without_its_cells(content: bytes) -> None:
    for schema in ("mixed", None):
        with pytest.raises(InvalidInput) as caught:
            read(content, stub(2, schema))
        assert "secret" not in str(caught.value)
        assert caught.value.__cause__ is None


def test_many_places_of_one_text_take_no_memory() -> None:
    """pyarrow 26 makes 1.9 GB of 130 kB of such a message, before anybody can look at it."""
    table = named(a=([1.0],)).replace_schema_metadata(
        {"k" * 50_000: "v"} | {str(number): "" for number in range(20_000)}
    )
    content = bytearray(stream(table))
    schema, _, _ = _message(bytes(content), 0, _SCHEMA)
    start, many = schema.vector(2, 4)
    first = next(schema.tables(2)).at
    for place in range(start, start + 4 * many, 4):
        content[8 + place : 12 + place] = (first - place).to_bytes(4, "little", signed=True)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput):
            read(bytes(content), stub(1))
        assert tracemalloc.get_traced_memory()[1] < 4 * len(content)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("spoilt", [200, pytest.param(20_000, marks=pytest.mark.soak)])
def test_a_spoilt_body_is_refused_or_is_rows(place: Place, spoilt: int) -> None:
    """Bytes changed, cut, doubled: an ``InvalidInput``, or a request that keeps its bounds.
    Nothing is charged.
    """
    rng = np.random.default_rng(spoilt)
    mixed = named(a=([1.5, None, 3.0],), b=(["x", "yé", None],), c=([True, False, True],))
    mixed = mixed.replace_schema_metadata({"reticent": '{"subjects": ["p", "q", "r"]}'})
    service = Service(place.settings())
    key = service.keys.find(place.secret)
    curated = service.catalogue.find("curated", may_ask=key.may_ask)
    found = {"refused": 0, "read": 0}
    for _ in range(spoilt):
        content = bytearray([stream(mixed), body(subjects=SUBJECTS)][rng.integers(2)])
        wide = len(content) == len(stream(mixed))
        kind = rng.integers(8)
        if kind == 0:
            del content[rng.integers(len(content)) :]
        elif kind == 1:
            start, stop = sorted(rng.integers(len(content), size=2))
            content[start:start] = content[start:stop]
        else:
            for at in rng.integers(len(content), size=rng.integers(1, 5)):
                content[at] = rng.choice([0, 1, 127, 128, 255, rng.integers(256)])
        try:
            if wide:
                told = read(bytes(content), stub(3))
                assert {*map(len, told.rows)} == {3}
                assert len(told.rows) <= 10
            else:
                reader = partial(arrow_rows, bundle=curated, most=10)
                asked = service.asked(key, curated, "request-1", bytes(content), read=reader)
                assert isinstance(asked, Asked)
                assert np.isfinite(np.asarray(asked.question.inputs, dtype=float)).all()
            found["read"] += 1
        except (InvalidInput, NotPermitted):  # not rows, or of another subject
            found["refused"] += 1
    service.close()
    assert min(found.values()) > spoilt / 20, found
    assert place.spent("patient-1") == 0
