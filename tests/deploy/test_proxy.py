"""The shipped proxy in front of a real service: what passes, and what never reaches the service."""

from __future__ import annotations

import json
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.deploy.proxy import Proxy, proxied
from tests.service.conftest import (
    RECORDS,
    Place,
    ask,
    make_place,
    place,
    served_bundles,
    served_models,
    signing_keys,
)
from tests.service.servers import Running, running

__all__ = ["make_place", "place", "served_bundles", "served_models", "signing_keys"]

LARGE = 2**20


@pytest.fixture
def server(place: Place, tmp_path: Path) -> Iterator[Running]:
    with running(place.settings(behind_proxy=True), tmp_path / "log") as found:
        yield found


@pytest.fixture
def proxy(server: Running, tmp_path: Path) -> Iterator[Proxy]:
    with proxied(server.port, tmp_path) as found:
        yield found


def asked(proxy: Proxy, secret: str, sent: bytes, *, length: int) -> tuple[float, bytes]:
    """Seconds until the proxy has closed, and what it said, where a part of a body is sent."""
    head = (
        "POST /v1/bundles/labels/answers HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {secret}\r\nIdempotency-Key: request-1\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()
    began, told = time.monotonic(), b""
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=30) as found:
        found.sendall(head + sent)
        try:
            while part := found.recv(1 << 16):
                told += part
        except ConnectionResetError:
            pass
    return time.monotonic() - began, told


def requests_seen(server: Running) -> list[dict[str, object]]:
    """The service's own lines about requests, but those by which the proxy checked a key."""
    lines = map(json.loads, server.log.read_text().splitlines())
    found = [line for line in lines if line["event"] == "request"]
    return [line for line in found if line["route"] != "models"]


def test_answers_small_and_large_come_through_the_proxy_over_https(
    server: Running, place: Place, tmp_path: Path
) -> None:
    with proxied(server.port, tmp_path, secure=True) as proxy:
        trusted = ssl.create_default_context(cafile=proxy.certificate)
        headers = {"Authorization": f"Bearer {place.secret}"}
        url = f"https://localhost:{proxy.port}"
        with httpx.Client(base_url=url, headers=headers, verify=trusted, timeout=60) as client:
            assert client.get("/healthz").json() == {"status": "ok"}
            for number, room in enumerate((0, LARGE)):
                content = json.dumps({"rows": [[0.3, 0.25]]}).encode() + b" " * room
                told = ask(client, f"request-{number}", content)
                assert told.status_code == 200, told.text
    assert place.spent(RECORDS) == 2 * 500_000


def test_a_large_body_without_a_valid_key_is_not_taken(
    server: Running, proxy: Proxy, place: Place
) -> None:
    """Of a body that never comes whole nothing is awaited, and the service sees no request."""
    unknown = place.secret[:-1] + ("A" if place.secret[-1] != "A" else "B")
    for secret in ("nobody", unknown):
        seconds, told = asked(proxy, secret, b"{", length=LARGE)
        assert seconds < 4
        head, _, body = told.partition(b"\r\n\r\n")
        assert head.split()[1] == b"401"
        assert b"application/problem+json" in head
        assert set(json.loads(body)) == {"type", "title", "status", "code", "detail", "request"}
    assert requests_seen(server) == []


def test_a_slow_or_oversized_body_stays_at_the_proxy(
    server: Running, proxy: Proxy, place: Place
) -> None:
    seconds, told = asked(proxy, place.secret, b"{", length=100)
    assert 4 < seconds < 20
    assert told == b"" or told.split()[1] in (b"400", b"408")
    _, told = asked(proxy, place.secret, b"{", length=2**24 + 1)
    assert told.split()[1] == b"413"
    assert json.loads(told.partition(b"\r\n\r\n")[2])["code"] == 2
    assert requests_seen(server) == []


def test_who_shows_no_key_is_slowed_down_and_who_pays_is_not(
    server: Running, proxy: Proxy, place: Place
) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{proxy.port}", timeout=30) as client:
        began = time.monotonic()
        assert {client.get("/healthz").status_code for _ in range(11)} == {200}
        assert time.monotonic() - began > 1.9  # five a second
    body = b'{"rows": [[0.3, 0.25]]}'
    headers = {"Authorization": f"Bearer {place.secret}"}
    url = f"http://127.0.0.1:{proxy.port}"
    with httpx.Client(base_url=url, headers=headers, timeout=30) as client:
        statuses = {ask(client, f"request-{number}", body).status_code for number in range(60)}
    assert statuses == {200}
