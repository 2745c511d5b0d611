"""Clients of a real service: one charge for every request, whatever the network does."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

from reticent.client import AsyncClient, Client
from reticent.client.steps import Retries
from reticent.core.bindings import answers_digest
from reticent.core.errors import (
    BudgetExceeded,
    InvalidInput,
    InvalidParameter,
    ServiceUnreachable,
    UnknownName,
    UntrustedSignature,
)
from reticent.tables.frames import NamedRows
from tests.client.relays import relayed
from tests.client.services import Running, key_files
from tests.service.cutting_proxy import cutting

X = load_iris().data
NAMES = ("length", "width", "petal length", "petal width")
SPECIES = {"setosa", "versicolor", "virginica", None}


@pytest.fixture
def client(service: Running) -> Iterator[Client]:
    with Client(service.url, service.client, trusted_key=service.public_key) as found:
        yield found


def spent(client: Client) -> float:
    (line,) = (line for line in client.budget() if line.scope["subject"] == "ward 7")
    return line.spent[0]


def test_what_a_key_may_ask(client: Client) -> None:
    offers = {offer.name: offer for offer in client.bundles()}
    assert offers["records"].protects == "records"
    assert offers["records"].subject == "ward 7"
    assert offers["records"].columns == NAMES
    assert offers["records"].guarantee.epsilon == 0.5
    assert offers["rows"].route == "device"
    assert offers["rows"].subject is None
    assert client.card("records")["guarantee"] == offers["records"].guarantee.to_dict()
    with pytest.raises(UnknownName, match="'records'"):
        client.offer()
    with pytest.raises(UnknownName, match="may ask"):
        client.card("none")


def test_answers_are_charged_once_and_signed(client: Client) -> None:
    before = spent(client)
    found = client.answers(NamedRows(X[:8], NAMES), bundle="records")
    assert found.values.shape == (8,)
    assert set(found.values.tolist()) <= SPECIES
    assert found.verified
    assert found.replayed == 0
    assert spent(client) - before == pytest.approx(8 * 0.5)
    assert client.receipt(found.receipt.identifier) == found.receipt
    assert client.anchor()["anchor"]["seq"] >= found.receipt.position


def test_a_large_table_takes_several_requests_and_reports_its_progress(
    client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    before = spent(client)
    found = client.answers(
        NamedRows(X[:50], NAMES), bundle="records", rows_per_request=20, progress=True
    )
    assert [receipt.answers for receipt in found.receipts] == [20, 20, 10]
    assert len(found.to_columns()["receipt"]) == 50
    assert spent(client) - before == pytest.approx(25.0)
    assert "50/50" in capsys.readouterr().err


def test_the_same_request_again_gives_the_same_bytes_at_no_cost(client: Client) -> None:
    rows = NamedRows(X[:30], NAMES)
    first = client.answers(rows, bundle="records", rows_per_request=20, request="of-a-test-1")
    before = spent(client)
    again = client.answers(rows, bundle="records", rows_per_request=20, request="of-a-test-1")
    assert again.values.tolist() == first.values.tolist()
    assert again.receipts == first.receipts
    assert again.replayed == 2
    with pytest.raises(InvalidInput, match="key"):
        client.answers(NamedRows(X[1:21], NAMES), bundle="records", request="of-a-test-1")
    assert spent(client) == before


def test_what_does_not_fit_is_refused_whole_before_the_first_charge(client: Client) -> None:
    before = spent(client)
    rows = NamedRows(np.tile(X, (10, 1)), NAMES)
    with pytest.raises(BudgetExceeded, match="Nothing was charged"):
        client.answers(rows, bundle="records", rows_per_request=20)
    cost = client.preview(1500, bundle="records")
    assert not cost.fits
    assert cost.epsilon == pytest.approx(750.0)
    assert 0 < (cost.largest or 0) < 1000
    assert client.preview(4, bundle="records").fits
    assert spent(client) == before


def test_a_receipt_by_another_key_is_refused(service: Running, tmp_path: Path) -> None:
    _, stranger = key_files(tmp_path, "stranger")
    with (
        Client(service.url, service.client, trusted_key=stranger) as client,
        pytest.raises(UntrustedSignature, match="another key"),
    ):
        client.answers(NamedRows(X[:1], NAMES), bundle="records")


@pytest.mark.parametrize(
    ("field", "value"),
    [("bundle", "0" * 64), ("answers", 4), ("seeded", True), ("guarantee", 0.25)],
)
def test_a_receipt_for_something_else_is_refused_whoever_signed_it(
    service: Running, field: str, value: Any
) -> None:
    def other(path: str, content: bytes) -> bytes:
        if not path.endswith("/answers"):
            return content
        body = json.loads(content)
        if field == "guarantee":
            body["receipt"][field]["epsilon"] = value
        else:
            body["receipt"][field] = value
        return json.dumps(body).encode()

    with (
        relayed(service.url, other) as (url, _),
        Client(url, service.client) as client,
        pytest.raises(UntrustedSignature, match=r"another (bundle|guarantee)"),
    ):
        client.answers(NamedRows(X[:1], NAMES), bundle="records")


@pytest.mark.parametrize("recomputed", [False, True])
def test_a_proxy_that_flips_every_label_is_found_out(service: Running, recomputed: bool) -> None:
    """It can write the digest of its own answers into the receipt, and cannot sign that."""

    def flipped(path: str, content: bytes) -> bytes:
        if not path.endswith("/answers"):
            return content
        found = json.loads(content)
        names = {"setosa": "virginica", "virginica": "setosa", "versicolor": "setosa"}
        found["answers"] = [names.get(label) for label in found["answers"]]
        if recomputed:
            parts = (found[name] for name in ("salt", "bundle", "columns", "answers", "withheld"))
            found["receipt"]["reply"] = answers_digest(*parts)
        return json.dumps(found).encode()

    asked = NamedRows(X[:3], NAMES)
    with relayed(service.url, flipped) as (url, _):
        key = service.public_key
        with (
            Client(url, service.client, trusted_key=key) as trusting,
            pytest.raises(UntrustedSignature),
        ):
            trusting.answers(asked, bundle="records")
        with Client(url, service.client) as believing:
            if recomputed:
                assert not believing.answers(asked, bundle="records").verified
            else:
                with pytest.raises(UntrustedSignature):
                    believing.answers(asked, bundle="records")


def test_an_answer_to_another_request_is_found_out(service: Running) -> None:
    """Signed, of this bundle, of as many rows: and about other rows."""
    kept: list[bytes] = []

    def swapped(path: str, content: bytes) -> bytes:
        if path.endswith("/answers"):
            kept.append(content)
            return kept[0]
        return content

    with (
        relayed(service.url, swapped) as (url, _),
        Client(url, service.client, trusted_key=service.public_key) as client,
    ):
        assert client.answers(NamedRows(X[:1], NAMES), bundle="records").verified
        with pytest.raises(UntrustedSignature):
            client.answers(NamedRows(X[60:61], NAMES), bundle="records")


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("ftp://localhost", "key-of-a-test"),
        ("http://answers.example.org", "key-of-a-test"),
        ("https://name:word@answers.example.org", "key-of-a-test"),
        ("https://answers.example.org?x=1", "key-of-a-test"),
        ("localhost:8000", "key-of-a-test"),
        ("https://answers.example.org", "key with spaces"),
        ("https://answers.example.org", "a\nb-key-of-a-test"),
    ],
)
def test_addresses_and_keys_that_would_be_read_on_the_way_are_refused(url: str, key: str) -> None:
    with pytest.raises(InvalidParameter) as raised:
        Client(url, key)
    assert key not in str(raised.value)


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_no_proxy_of_the_environment_sees_what_stays_on_this_machine(
    service: Running, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with relayed(service.url, lambda _, content: content) as (proxy, seen):
        monkeypatch.setenv(name, proxy)
        monkeypatch.setenv("NO_PROXY", "elsewhere.example.org")
        with Client(service.url, service.client) as client:
            client.bundles()

        async def ask() -> None:
            async with AsyncClient(service.url, service.client) as other:
                await other.bundles()

        asyncio.run(ask())
        assert not seen
        with Client(service.url, service.client, proxy=proxy) as client:
            client.bundles()
        assert seen  # as an argument it is taken


@pytest.mark.parametrize("position", [0, 20, 300, 900])
def test_an_answer_that_is_cut_off_is_asked_for_again_and_charged_once(
    client: Client, service: Running, position: int
) -> None:
    before, rows = spent(client), NamedRows(X[:3], NAMES)
    cuts = Counter[str]()

    def cut(connection: int) -> int | None:
        # the first connection asks for the list of bundles; the next two for the answers
        cuts[str(connection in (1, 2))] += 1
        return position if connection in (1, 2) else None

    with (
        cutting(service.url, cut) as url,
        Client(
            url,
            service.client,
            trusted_key=service.public_key,
            retries=Retries(6, 0.01, 0.02),
        ) as cut_client,
    ):
        found = cut_client.answers(rows, bundle="records")
    assert cuts["True"] == 2
    assert found.replayed == 1
    assert found.verified
    assert spent(client) - before == pytest.approx(1.5)


def test_after_the_last_attempt_the_message_names_the_request(
    client: Client, service: Running
) -> None:
    before, rows = spent(client), NamedRows(X[:3], NAMES)
    with (
        cutting(service.url, lambda connection: 30 if connection else None) as url,
        Client(url, service.client, retries=Retries(2, 0.01, 0.01)) as cut_client,
        pytest.raises(ServiceUnreachable, match="repeat the call with request='of-a-test-2'"),
    ):
        cut_client.answers(rows, bundle="records", request="of-a-test-2")
    assert spent(client) - before == pytest.approx(1.5)
    found = client.answers(rows, bundle="records", request="of-a-test-2")
    assert found.replayed == 1
    assert spent(client) - before == pytest.approx(1.5)


def test_a_client_for_asyncio(service: Running) -> None:
    async def ask() -> tuple[list[Any], Counter[int]]:
        async with AsyncClient(
            service.url, service.client, trusted_key=service.public_key
        ) as client:
            offers = await client.bundles()
            found = await asyncio.gather(
                *(client.answers(NamedRows(X[:5], NAMES), bundle="records") for _ in range(4))
            )
            cost = await client.preview(3, bundle="records")
            assert cost.fits
            assert await client.card("records")
            assert await client.budget(subject="ward 7")
            assert await client.anchor()
            assert len(await client.models()) == 1
            first = found[0].receipt
            assert await client.receipt(first.identifier) == first
            return list(offers), Counter(part.receipt.answers for part in found)

    offers, answers = asyncio.run(ask())
    assert len(offers) == 2
    assert answers == {5: 4}
