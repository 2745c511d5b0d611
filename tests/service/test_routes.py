"""Routes, as a client meets them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx

from reticent.core.guarantees import Guarantee
from reticent.core.releases import Receipt
from reticent.core.signatures import verify_receipt
from reticent.core.strict_json import strict_dumps
from tests.service.conftest import RECORDS, Place, ask

ROWS = [[0.3, 0.25], [-0.3, -0.2], [0.0, 0.1]]


def receipt_of(told: dict[str, Any]) -> Receipt:
    values = dict(told["receipt"])
    return Receipt(guarantee=Guarantee.from_dict(values.pop("guarantee")), **values)


def test_an_answer_is_charged_and_signed(client: httpx.Client, place: Place) -> None:
    told = ask(client, body={"rows": ROWS})
    assert told.status_code == 200, told.text
    found = told.json()
    assert set(found["answers"]) <= {"no", "yes", None}
    assert [answer is None for answer in found["answers"]] == found["withheld"]
    assert place.spent(RECORDS) == 3 * 500_000
    receipt = receipt_of(found)
    assert receipt.answers == 3
    assert receipt.position > 0
    verify_receipt(receipt, strict_dumps(found["signature"]), trusted_key=place.public_key)
    again = client.get(f"/v1/receipts/{receipt.identifier}").json()
    assert again == {"receipt": found["receipt"], "signature": found["signature"]}


def test_spelling_counts_under_a_nonce_alone(client: httpx.Client) -> None:
    contents = (b'{"rows": [[0.5, 0]]}', b'{"rows": [[0.5, 0]]}', b'{"rows": [[5e-1, 0.0]]}')
    for name, nonce in (("request-1", {}), ("request-2", {"Request-Nonce": "5f" * 16})):
        headers = {"Idempotency-Key": name, "Content-Type": "application/json", **nonce}
        told = [
            client.post("/v1/bundles/labels/answers", content=content, headers=headers)
            for content in contents
        ]
        assert told[1].content == told[0].content
        # Under a nonce the receipt is of the first bytes.
        assert [reply.status_code for reply in told] == [200, 200, 422 if nonce else 200]
        assert nonce or told[2].content == told[0].content


def test_keys_of_two_clients_do_not_meet(client: httpx.Client, place: Place) -> None:
    body = {"rows": ROWS, "subject": "patient-9"}
    mine = ask(client, body=body, bundle="curated")
    client.headers["Authorization"] = f"Bearer {place.other}"
    theirs = ask(client, body=body, bundle="curated")
    assert theirs.headers["Idempotent-Replayed"] == "false"
    assert theirs.json()["receipt"]["identifier"] != mine.json()["receipt"]["identifier"]
    foreign = client.get(f"/v1/receipts/{mine.json()['receipt']['identifier']}")
    assert foreign.status_code == 404


def test_rows_have_a_bound(place: Place, serve_here: Callable[..., httpx.Client]) -> None:
    client = serve_here(place.settings(most_rows=2, most_bytes=2000), place.secret)
    assert ask(client, body={"rows": ROWS[:2]}).status_code == 200
    assert ask(client, "request-2", {"rows": ROWS}).status_code == 422
    assert ask(client, "request-3", {"rows": [[1.0] * 1000]}).status_code == 413
    chunked = client.post(
        "/v1/bundles/labels/answers",
        content=iter([b"{}"]),
        headers={"Idempotency-Key": "request-4", "Content-Type": "application/json"},
    )
    assert chunked.status_code == 411


def test_without_a_valid_key_there_is_nothing(client: httpx.Client) -> None:
    paths = [
        ("GET", path)
        for path in (
            "/v1/bundles",
            "/v1/bundles/labels/card",
            "/v1/bundles/rows/files/manifest.json",
            "/v1/budget",
            "/v1/receipts/0123",
            "/v1/anchor",
            "/v1/models",
            "/metrics",
        )
    ]
    paths += [("POST", "/v1/bundles/labels/answers"), ("POST", "/v1/bundles/labels/preview")]
    paths += [("POST", "/v1/models/from-released/predictions")]
    schema = client.get("/openapi.json").json()
    documented = {
        (method.upper(), path) for path, methods in schema["paths"].items() for method in methods
    }
    assert len(documented) == len(paths) + 1  # and /healthz
    for header in (None, "Bearer reticent_wrong", "Basic abc", "Bearer"):
        client.headers.pop("Authorization", None)
        if header is not None:
            client.headers["Authorization"] = header
        for method, path in paths:
            told = client.request(method, path, headers={"Idempotency-Key": "request-1"})
            assert (told.status_code, told.json()["code"]) == (401, 20), (method, path, header)
    assert client.get("/healthz").json() == {"status": "ok"}


def test_owners_look_and_clients_ask(client: httpx.Client, place: Place) -> None:
    assert client.get("/metrics").status_code == 403
    ask(client, body={"rows": ROWS})
    own = client.get("/v1/budget").json()["budgets"]
    assert len(own) == 11
    client.headers["Authorization"] = f"Bearer {place.other}"
    assert [
        budget["scope"]["subject"] for budget in client.get("/v1/budget").json()["budgets"]
    ] == ["patient-9"]
    client.headers["Authorization"] = f"Bearer {place.owner}"
    told = client.get("/v1/budget", params={"subject": RECORDS}).json()["budgets"]
    assert told[0]["left"]["epsilon"] == 1000.0 - 1.5
    page = client.get("/metrics").text
    assert 'reticent_rows_answered_total{bundle="labels"} 3.0' in page
    assert ask(client, "request-2", {"rows": ROWS}).status_code == 403


def test_a_preview_is_free(client: httpx.Client, place: Place) -> None:
    told = client.post("/v1/bundles/labels/preview", json={"answers": 10}).json()
    assert (told["fits"], told["epsilon"], told["largest"]) == (True, 5.0, 2000)
    told = client.post("/v1/bundles/labels/preview", json={"answers": 2001}).json()
    assert told["fits"] is False
    each = {"subjects": ["patient-1", "patient-2"]}
    told = client.post("/v1/bundles/curated/preview", json=each).json()
    assert (told["fits"], told["epsilon"], told["largest"]) == (True, 6.0, None)
    unknown = {"answers": 1, "subject": "patient-77"}
    told = client.post("/v1/bundles/curated/preview", json=unknown).json()
    assert (told["fits"], told["largest"]) == (False, 0)
    assert "no budget" in told["reason"]
    forged = {"answers": 1, "subject": "someone else"}
    assert client.post("/v1/bundles/curated/preview", json=forged).status_code == 403
    assert place.spent(RECORDS) == 0


def test_models_answer_released_values_alone(client: httpx.Client) -> None:
    listed = client.get("/v1/models").json()["models"]
    assert [model["name"] for model in listed] == ["from-released"]
    path = "/v1/models/from-released/predictions"
    body = {"values": [[2.0, 2.0], None, [0.0, 0.0]]}
    told = client.post(path, json=body)
    assert told.status_code == 200, told.text
    assert told.json()["predictions"][1] is None
    assert set(told.json()["predictions"]) == {0, 1, None}
    assert client.post(path, json={"values": [None]}).json()["predictions"] == [None]
    for wrong in ({"rows": ROWS}, {"values": [[1.0]]}, {"values": [[1.0, 2.0], [1.0]]}, {}):
        assert client.post(path, json=wrong).status_code == 422, wrong


def test_raw_rows_of_a_bundle_that_protects_them_are_refused(
    client: httpx.Client, place: Place
) -> None:
    told = ask(client, body={"rows": ROWS, "subject": "patient-1"}, bundle="rows")
    assert (told.status_code, told.json()["code"]) == (403, 21)
    listed = {found["name"]: found for found in client.get("/v1/bundles").json()["bundles"]}
    assert listed["rows"]["route"] == "device"
    assert listed["rows"]["protects"] == listed["curated"]["protects"] == "input"
    assert listed["curated"]["route"] == "answers"
    assert listed["labels"]["subject"] == RECORDS
    assert listed["free"]["route"] == "free"
    assert place.spent("patient-1") == 0
