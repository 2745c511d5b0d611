"""What strangers and thieves send to keep others from their answers, by raw sockets."""

from __future__ import annotations

import asyncio
import json
import logging
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pytest

from reticent.core.errors import InvalidInput, LedgerUnavailable, ServiceBusy
from reticent.core.signatures import verify
from reticent.core.strict_json import strict_dumps
from reticent.service.connections import check_descriptors
from reticent.service.core import Service
from reticent.service.logs import JsonLines
from tests.machine import peak_memory
from tests.service.conftest import RECORDS, ROWS, Place, ask
from tests.service.servers import Running, running


@pytest.fixture
def server(place: Place, tmp_path: Path) -> Iterator[Running]:
    settings = place.settings(
        connections=24, per_address=16, head=0.6, send=0.6, deadline=1.0, queue=8, per_key=4
    )
    with running(settings, tmp_path / "log") as found:
        yield found


@pytest.fixture
def sockets() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def joined(
    stack: ExitStack, server: Running, sent: bytes, *, address: str = "127.0.0.1"
) -> socket.socket:
    """A connection from ``address`` on which something was sent."""
    found = socket.create_connection(
        ("127.0.0.1", server.port), timeout=20, source_address=(address, 0)
    )
    stack.enter_context(found)
    found.sendall(sent)
    return found


def read_all(found: socket.socket) -> bytes:
    """What comes until the server closes."""
    parts = []
    try:
        while part := found.recv(1 << 16):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def post(secret: str, *headers: str, length: int = 2, path: str = "labels/answers") -> bytes:
    """The head of a request for answers."""
    lines = (
        f"POST /v1/bundles/{path} HTTP/1.1",
        "Host: a",
        f"Authorization: Bearer {secret}",
        "Idempotency-Key: request-1",
        "Content-Type: application/json",
        "Connection: close",
        f"Content-Length: {length}",
        *headers,
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def is_served(server: Running, place: Place) -> bool:
    with server.client(place.secret) as client:
        return client.get("/v1/bundles").status_code == 200


@pytest.mark.parametrize("start", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nX: "])
def test_a_head_has_a_deadline_from_the_first_byte(
    server: Running, sockets: ExitStack, start: bytes
) -> None:
    found = joined(sockets, server, start)
    began = time.monotonic()
    stop = threading.Event()

    def trickle() -> None:
        while start and not stop.wait(0.05):
            try:
                found.sendall(b"x")
            except OSError:
                return

    thread = threading.Thread(target=trickle)
    thread.start()
    assert read_all(found) == b""
    assert time.monotonic() - began < 10
    stop.set()
    thread.join()


def test_a_half_head_behind_a_whole_request_has_one_too(
    server: Running, sockets: ExitStack
) -> None:
    found = joined(sockets, server, b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\nGET /heal")
    began = time.monotonic()
    assert b"200 OK" in read_all(found)
    assert time.monotonic() - began < 10


def test_connections_are_bounded_in_all_and_by_address(
    server: Running, sockets: ExitStack, place: Place
) -> None:
    paying = sockets.enter_context(server.client(place.secret))
    assert paying.get("/v1/bundles").status_code == 200
    same = [joined(sockets, server, b"", address="127.0.0.2") for _ in range(40)]
    others = [joined(sockets, server, b"", address=f"127.0.0.{3 + n % 8}") for n in range(40)]
    # Whoever has shown a key keeps its place, and who comes last gets one.
    assert paying.get("/v1/bundles").status_code == 200
    assert is_served(server, place)
    assert {read_all(found) for found in (*same, *others)} == {b""}


def test_answers_that_are_not_read_hold_no_place(
    server: Running, sockets: ExitStack, place: Place
) -> None:
    asked = b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n" * 400
    key = f"Host: a\r\nAuthorization: Bearer {place.secret}"
    card = f"GET /v1/bundles/labels/card HTTP/1.1\r\n{key}\r\n\r\n".encode()
    for number in range(12):
        found = joined(sockets, server, b"", address=f"127.0.0.{2 + number % 4}")
        found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        found.settimeout(0.5)
        with suppress(TimeoutError, ConnectionError):
            found.sendall(asked if number % 2 else card * 400)
    assert is_served(server, place)
    time.sleep(1.0)
    assert is_served(server, place)


def test_a_body_that_nobody_reads_is_not_waited_for(
    server: Running, sockets: ExitStack, place: Place
) -> None:
    """A stranger's body of 16 MiB, a byte at a time: the refusal comes, and then the end."""
    for secret, head in (("reticent_wrong", post("reticent_wrong", length=2**24)),):
        found = joined(sockets, server, head)
        began = time.monotonic()
        told = read_all(found)
        assert b"401" in told.split(b"\r\n")[0], secret
        assert time.monotonic() - began < 10
    slow = joined(sockets, server, post(place.secret, length=2**20) + b"{")
    assert b"408" in read_all(slow).split(b"\r\n")[0]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (("X-Long: " + "a" * 70_000,), 431),
        (tuple(f"X-{number}: a" for number in range(9000)), 431),
        (("Idempotency-Key: request-2",), 400),
        (("Authorization: Bearer other",), 400),
        (("Content-Type: text/plain",), 400),
        (("Host: b",), 400),
        (("Content-Length: 7",), 400),
        (("no header",), 400),
    ],
)
def test_heads_that_are_too_long_or_say_something_twice_are_refused(
    server: Running, sockets: ExitStack, place: Place, headers: tuple[str, ...], status: int
) -> None:
    found = joined(sockets, server, post(place.secret, *headers) + b"{}")
    head, _, body = read_all(found).partition(b"\r\n\r\n")
    assert int(head.split()[1]) in (status, 400)
    assert b"application/problem+json" in head
    problem = json.loads(body)
    assert set(problem) == {"type", "title", "status", "code", "detail", "request"}
    assert problem["code"] == 2
    assert place.spent(RECORDS) == 0


@pytest.mark.parametrize(
    "body",
    [
        b'{"rows": [[0.3, 0.25]], "rows": [[0.1, 0.1]]}',
        b'{"rows": [[0.3, 0.25]], "subject": null, "\\u0073ubject": null}',
        b'{"subject": "ward 7", "subject": "ward 8", "rows": [[0.3, 0.25]]}',
    ],
)
def test_a_name_that_stands_twice_in_a_body_is_refused(
    server: Running, place: Place, body: bytes
) -> None:
    with server.client(place.secret) as client:
        told = ask(client, body=body)
        twice, headers = b'{"answers": 1, "answers": 2}', {"Content-Type": "application/json"}
        free = client.post("/v1/bundles/labels/preview", content=twice, headers=headers)
    assert (told.status_code, free.status_code) == (422, 422)
    assert place.spent(RECORDS) == 0


def test_a_body_is_counted_before_it_is_parsed(server: Running, place: Place) -> None:
    """Sixteen times the largest body that unfolds: refused by what it consists of, and cheaply."""
    before = peak_memory(server.process.pid)
    unfolding = b'{"rows":[' + b"[0]," * (2**22 - 100) + b"[0]]}"
    nested = b'{"rows":' + b"[" * (2**23) + b"}"
    texts = b'{"rows":[[' + b'"",' * (2**22) + b'""]]}'
    headers = {"Idempotency-Key": "request-1", "Content-Type": "application/json"}
    with server.client(place.secret) as client:
        for body in (unfolding, nested, texts) * 3:
            for route in ("labels/answers", "labels/preview"):
                try:
                    told = client.post(f"/v1/bundles/{route}", content=body, headers=headers)
                except httpx.HTTPError:
                    continue  # refused while it was sent
                assert told.status_code in (422, 429)
    assert peak_memory(server.process.pid) - before < 60 * 2**20
    assert place.spent(RECORDS) == 0


def test_bytes_under_way_are_bounded_by_key(
    server: Running, sockets: ExitStack, place: Place
) -> None:
    half = joined(sockets, server, post(place.secret, length=2**23) + b'{"rows": [')
    time.sleep(0.3)
    full = joined(sockets, server, post(place.secret, length=2**24) + b"{")
    other = joined(sockets, server, post(place.other, length=2**23, path="curated/answers") + b"{")
    assert b" 429 " in read_all(full).split(b"\r\n")[0]
    assert b" 408 " in read_all(other).split(b"\r\n")[0]
    assert b" 408 " in read_all(half).split(b"\r\n")[0]


def test_the_deadline_is_looked_at_while_the_answering_thread_is_busy(place: Place) -> None:
    service = Service(place.settings(threads=1, deadline=0.3))
    key = service.keys.find(place.secret)
    bundle = service.catalogue.find("labels", may_ask=key.may_ask)
    body = json.dumps({"rows": ROWS}).encode()

    async def ask() -> float:
        with service.answering.turn:  # somebody else computes for a long time
            began = time.monotonic()
            for waited in (
                service.answered(key, bundle, "request-1", body),
                service.run(service.previewed, key, bundle, b'{"answers": 1}'),
            ):
                with pytest.raises(ServiceBusy):
                    await waited
            return time.monotonic() - began

    assert asyncio.run(asyncio.wait_for(ask(), 20)) < 5
    service.close()
    assert place.spent(RECORDS) == 0  # nothing was begun afterwards


def test_strangers_do_not_stand_in_the_way_of_keys_that_were_valid(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service(place.settings())
    find = service.keys.find
    let_go = threading.Event()

    def slowly(secret: str) -> object:
        if secret != place.secret:
            assert let_go.wait(30)
        return find(secret)

    monkeypatch.setattr(service.keys, "find", slowly)

    async def ask() -> None:
        await service.key_of(place.secret)
        strange = [asyncio.ensure_future(service.key_of(f"reticent_{n}")) for n in range(50)]
        await asyncio.sleep(0.6)  # what was found is looked up again
        assert (await service.key_of(place.secret)).principal == "acme"
        let_go.set()
        told = await asyncio.gather(*strange, return_exceptions=True)
        assert sum(isinstance(one, ServiceBusy) for one in told) == 42

    asyncio.run(ask())
    service.close()


@pytest.mark.parametrize("path", ["/v1/receipts/a%00b", "/v1/budget?subject=a%00b", "/a%00"])
def test_the_character_zero_is_refused_at_the_edge(
    any_place: Place, serve_here: Callable[..., httpx.Client], path: str
) -> None:
    client = serve_here(any_place.settings(), any_place.secret)
    assert client.get(path).status_code == 400
    body = b'{"rows": [[0.3, 0.25]], "subject": "a\\u0000b"}'
    for bundle in ("labels", "curated"):
        assert ask(client, body=body, bundle=bundle).status_code == 422


def test_health_is_what_the_next_charge_needs(
    any_place: Place,
    serve_here: Callable[..., httpx.Client],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    looks = 0
    post_together = Service(any_place.settings()).ledger.__class__.post_together

    def counted(*arguments: object, **others: object) -> object:
        nonlocal looks
        looks += 1
        if looks > 1:
            raise LedgerUnavailable("file-name: is older than its anchor; `reticent accept`")
        return post_together(*arguments, **others)  # type: ignore[arg-type]

    monkeypatch.setattr("reticent.ledger.ledger.Ledger.post_together", counted)
    client = serve_here(any_place.settings())
    assert {client.get("/healthz").status_code for _ in range(20)} == {200}
    assert looks == 1
    time.sleep(1.1)
    caplog.set_level(logging.INFO, logger="reticent.service")
    told = client.get("/healthz")
    assert (told.status_code, told.json()["code"]) == (503, 13)
    assert "file-name" not in told.text
    assert "reticent accept" not in told.text
    assert "is older than its anchor" in "".join(map(JsonLines().format, caplog.records))


def test_metrics_open_to_a_secret_that_opens_nothing_else(
    place: Place, serve_here: Callable[..., httpx.Client], tmp_path: Path
) -> None:
    secret = tmp_path / "scraper"
    secret.write_text("short\n")
    with pytest.raises(InvalidInput):
        Service(place.settings(metrics_key=secret))
    secret.write_text("0123456789abcdef" * 4 + "\n")
    client = serve_here(place.settings(metrics_key=secret))
    for path, status in (("/metrics", 200), ("/v1/budget", 401), ("/v1/bundles", 401)):
        told = client.get(path, headers={"Authorization": f"Bearer {secret.read_text().strip()}"})
        assert told.status_code == status
    assert client.get("/metrics", headers={"Authorization": "Bearer 0123"}).status_code == 401


def test_no_service_listens_to_other_machines_with_nothing_in_front(place: Place) -> None:
    for host in ("0.0.0.0", "::", "answers.example.org", "10.0.0.1"):
        with pytest.raises(InvalidInput, match="behind-proxy"):
            place.settings(host=host).check_listening()
        place.settings(host=host, behind_proxy=True).check_listening()
    for host in ("127.0.0.1", "::1", "localhost"):
        place.settings(host=host).check_listening()


def test_more_connections_than_the_system_has_files_are_refused_at_the_start() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    check_descriptors(1)
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft, hard)
    if hard != resource.RLIM_INFINITY:
        with pytest.raises(InvalidInput, match="open files"):
            check_descriptors(hard)


def test_the_log_tells_of_changes_alone_and_in_words(server: Running, place: Place) -> None:
    """Its anchor is signed: whoever keeps the log can tell later whether the ledger went back."""
    with httpx.Client(base_url=server.url) as client:
        client.get("/healthz")
    server.stop()
    lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    (said,) = (line for line in lines if line["event"] == "anchor")
    stated, signature = strict_dumps(said["anchor"]), strict_dumps(said["signature"])
    verify(stated, signature, purpose="anchor", trusted_key=place.public_key)
    assert not [line for line in lines if "%" in line["event"]]
