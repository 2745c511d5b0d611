"""The route that is asked all day asks for no less than the framework would, wherever it is."""

from __future__ import annotations

import json
from collections.abc import Callable

import httpx
import pytest

from tests.service.conftest import RECORDS, ROWS, Place

PATH = "/v1/bundles/labels/answers"


@pytest.fixture
def clients(place: Place, serve_here: Callable[..., httpx.Client]) -> list[httpx.Client]:
    """Of two services on one ledger, the second of which is under a path of a server before it."""
    settings = place.settings(most_bytes=2000)
    return [serve_here(settings), serve_here(settings, under="/behind")]


def test_both_ways_ask_for_the_same(clients: list[httpx.Client], place: Place) -> None:
    ledger = place.open()
    before = ledger.anchor()
    usual = {
        "Authorization": f"Bearer {place.secret}",
        "Idempotency-Key": "request-1",
        "Content-Type": "application/json",
    }
    other = {"rows": ROWS, "subject": "patient-1"}
    curated = PATH.replace("labels", "curated")
    refused: list[tuple[dict[str, str], object, str, int, int]] = [
        ({"Authorization": "Bearer reticent_wrong"}, {"rows": ROWS}, PATH, 401, 20),
        ({"Authorization": f"Basic {place.secret}"}, {"rows": ROWS}, PATH, 401, 20),
        ({"Authorization": f"Bearer {place.owner}"}, {"rows": ROWS}, PATH, 403, 21),
        ({"Authorization": f"Bearer {place.other}"}, {"rows": ROWS}, PATH, 403, 21),
        ({}, other, PATH, 422, 2),
        ({}, other, PATH.replace("labels", "rows"), 403, 21),
        ({}, {"rows": ROWS}, PATH.replace("labels", "none"), 404, 4),
        ({}, {"rows": ROWS}, f"{PATH}/", 404, 4),
        ({}, {"rows": ROWS}, PATH.replace("labels", "labels%2F"), 404, 4),
        ({"Idempotency-Key": "short"}, {"rows": ROWS}, PATH, 422, 2),
        ({"Content-Type": "text/plain"}, {"rows": ROWS}, PATH, 415, 2),
        ({"Content-Encoding": "gzip"}, {"rows": ROWS}, PATH, 415, 2),
        ({}, {"rows": ROWS * 200}, PATH, 413, 2),
        ({}, {"rows": "none"}, PATH, 422, 2),
        ({}, {"rows": [[0.5, None]]}, PATH, 422, 2),
        ({}, {"rows": [["0.5", 0.5]]}, PATH, 422, 2),
        ({}, {"rows": [[1.0]]}, PATH, 422, 2),
        ({}, {"rows": []}, PATH, 422, 2),
        ({}, {"rows": ROWS, "columns": ["a", "b"]}, PATH, 422, 2),
        ({}, {"rows": ROWS, "principal": "bolt"}, PATH, 422, 2),
        ({}, {"rows": [[float("inf"), 1.0]]}, PATH, 422, 2),
        ({}, {"rows": ROWS}, curated, 422, 2),
        ({}, {"rows": ROWS, "subjects": ["patient-1"]}, curated, 422, 2),
        ({}, {"rows": ROWS, "subject": "someone else"}, curated, 403, 21),
        ({}, {"rows": ROWS, "subject": "patient-1\u200b"}, curated, 422, 2),
        ({}, {"rows": ROWS, "subject": "patient-77"}, curated, 403, 12),
    ]
    for client in clients:
        for headers, body, path, status, code in refused:
            content = json.dumps(body).replace("Infinity", "1e999")
            told = client.post(path, content=content, headers=usual | headers)
            assert told.status_code == status, (headers, path, told.text)
            assert told.headers["Content-Type"] == "application/problem+json"
            assert told.headers["Cache-Control"] == "no-store"
            problem = told.json()
            assert (problem["status"], problem["code"]) == (status, code), (body, path)
            assert problem["type"] == f"urn:reticent:error:{code}"
            assert problem["request"] == told.headers["X-Request-Id"]
        for left_out, status in (("Authorization", 401), ("Idempotency-Key", 422)):
            headers = {name: value for name, value in usual.items() if name != left_out}
            told = client.post(PATH, content=json.dumps({"rows": ROWS}), headers=headers)
            assert told.status_code == status
        for method in ("GET", "HEAD", "OPTIONS", "PUT"):
            assert client.request(method, PATH, headers=usual).status_code == 405
    assert ledger.anchor() == before
    ledger.close()


def test_both_ways_are_one_request(clients: list[httpx.Client], place: Place) -> None:
    headers = {"Authorization": f"Bearer {place.secret}", "Idempotency-Key": "request-1"}
    told = [
        client.post(path, json={"rows": ROWS}, headers=headers)
        for path in (PATH, PATH.replace("answers", "%61nswers"))
        for client in clients
    ]
    assert [one.status_code for one in told] == [200] * 4
    assert len({one.content for one in told}) == 1
    assert [one.headers["Idempotent-Replayed"] for one in told] == ["false", *["true"] * 3]
    assert place.spent(RECORDS) == 2 * 500_000
