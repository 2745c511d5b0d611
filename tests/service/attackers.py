"""Connections that try to keep others from their answers, all in one process:

    python -m tests.service.attackers PORT KEYLESS KEYED SECRET

Strangers have no key and many addresses; thieves have one key. Each connection does one thing over
and over, and is opened again where the server closes it. With port 0 they attack a socket of their
own that takes everything and answers nothing, so that they are as busy as otherwise.
"""

from __future__ import annotations

import selectors
import socket
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count

AGAIN = 0.2
"""Seconds after which a connection that was closed is opened again."""

_BODY = 2**24
_UNFOLDING = b'{"rows":[' + b"[0]," * ((_BODY - 20) // 4) + b"[0]]"
_UNFOLDING += b" " * (_BODY - len(_UNFOLDING) - 1) + b"}"
_HOST = "Host: answers.example.org"


@dataclass(frozen=True)
class Kind:
    """What a connection does.

    Attributes:
        name: of it.
        content: is sent.
        pause: seconds between two bytes; 0 for as fast as possible.
        read: whether answers are read.
        again: whether the content is sent again once it is sent.
    """

    name: str
    content: bytes
    pause: float = 0.0
    read: bool = True
    again: bool = False


@dataclass
class Attacker:
    """A connection, and how far it is."""

    kind: Kind
    address: str
    port: int
    socket: socket.socket | None = None
    at: int = 0
    due: float = field(default=0.0)


def _get(path: str, *headers: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", _HOST, *headers]).encode() + b"\r\n\r\n"


def _post(*headers: str, length: int, path: str = "/v1/bundles/labels/answers") -> bytes:
    lines = [f"POST {path} HTTP/1.1", _HOST, "Content-Type: application/json"]
    lines += [f"Content-Length: {length}", "Idempotency-Key: a-name-of-mine", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def strangers() -> list[Kind]:
    """What can be done without a key."""
    wrong = "Authorization: Bearer reticent_of-nobody"
    return [
        Kind("half head", b"GET /healthz HTTP/1.1\r\nX-Slow: " + b"a" * 1000, pause=0.5),
        Kind("unread pipeline", _get("/openapi.json") * 200, read=False, again=True),
        Kind("slow body", _post(wrong, length=_BODY) + b" " * 1000, pause=0.5),
        Kind("70 kB of headers", _get("/healthz", "X-Long: " + "a" * 70_000), again=True),
        Kind("doubled headers", _get("/healthz", _HOST, "Host: b"), again=True),
        Kind("body at the limit", _post(wrong, length=_BODY) + _UNFOLDING, again=True),
        Kind("nothing", b""),
        Kind("half head behind a request", _get("/healthz") + b"GET /he" + b"a" * 100, pause=0.3),
    ]


def thieves(secret: str) -> list[Kind]:
    """What can be done with one key."""
    key = f"Authorization: Bearer {secret}"
    twice = b'{"rows": [[0.3, 0.2]], "rows": [[0.1, 0.1]]}'
    return [
        Kind("body at the limit", _post(key, length=_BODY) + _UNFOLDING, again=True),
        Kind("duplicate names", _post(key, length=len(twice)) + twice, again=True),
        Kind("slow body", _post(key, length=_BODY) + b" " * 1000, pause=0.5),
        Kind("unread pipeline", _get("/v1/bundles", key) * 200, read=False, again=True),
        Kind("doubled headers", _post(key, key, length=2) + b"{}", again=True),
    ]


def attack(port: int, keyless: int, keyed: int, secret: str) -> None:
    """Attacks until this process is ended."""
    attackers = [
        Attacker(kind, f"127.0.{2 + number // 250}.{1 + number % 62}", port)
        for kinds, many in ((strangers(), keyless), (thieves(secret), keyed))
        for number, kind in zip(range(many), _round(kinds), strict=False)
    ]
    ready = selectors.DefaultSelector()
    if not port:
        sink = socket.create_server(("127.0.0.1", 0), backlog=4096)
        sink.setblocking(False)
        ready.register(sink, selectors.EVENT_READ, None)
        for attacker in attackers:
            attacker.port = sink.getsockname()[1]
    said, counts = time.monotonic(), Counter[str]()
    while True:
        now = time.monotonic()
        for attacker in attackers:
            if attacker.due <= now and (attacker.socket is None or attacker.kind.pause):
                _step(attacker, ready, now, counts)
        for key, events in ready.select(0.02):
            if key.data is None:
                _swallow(key.fileobj, ready)  # type: ignore[arg-type]
            else:
                _ready(key.data, events, ready, counts)
        if now - said > 1:
            print("open", sum(one.socket is not None for one in attackers), flush=True)
            said = now


def _round(kinds: list[Kind]):  # type: ignore[no-untyped-def]
    return (kinds[number % len(kinds)] for number in count())


def _step(
    attacker: Attacker, ready: selectors.BaseSelector, now: float, counts: Counter[str]
) -> None:
    """Opens a connection, or sends the next byte on a slow one."""
    if attacker.socket is None:
        found = socket.socket()
        found.setblocking(False)
        if not attacker.kind.read:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        try:
            found.bind((attacker.address, 0))
            with suppress(BlockingIOError):
                found.connect(("127.0.0.1", attacker.port))
        except OSError:
            found.close()
            attacker.due = now + AGAIN
            return
        attacker.socket, attacker.at = found, 0
        attacker.due = now + attacker.kind.pause
        wanted = selectors.EVENT_READ if attacker.kind.read else 0
        if attacker.kind.content and not attacker.kind.pause:
            wanted |= selectors.EVENT_WRITE
        ready.register(found, wanted or selectors.EVENT_READ, attacker)
        return
    first = 0 if attacker.at else attacker.kind.content.find(b"\r\n\r\n") + 4
    _send(attacker, ready, max(1, first) if not attacker.at else 1, counts)
    attacker.due = now + attacker.kind.pause


def _send(
    attacker: Attacker, ready: selectors.BaseSelector, most: int, counts: Counter[str]
) -> None:
    kind, found = attacker.kind, attacker.socket
    assert found is not None
    try:
        attacker.at += found.send(kind.content[attacker.at : attacker.at + most])
    except BlockingIOError:
        return
    except OSError:
        _lose(attacker, ready, counts)
        return
    if attacker.at >= len(kind.content):
        if kind.again:
            attacker.at = 0
        elif not kind.pause:
            ready.modify(found, selectors.EVENT_READ, attacker)


def _ready(
    attacker: Attacker, events: int, ready: selectors.BaseSelector, counts: Counter[str]
) -> None:
    found = attacker.socket
    if found is None:
        return
    if events & selectors.EVENT_READ and attacker.kind.read:
        try:
            part = found.recv(1 << 16)
        except BlockingIOError:
            part = b" "
        except OSError:
            part = b""
        if not part:
            _lose(attacker, ready, counts)
            return
    if events & selectors.EVENT_WRITE:
        _send(attacker, ready, 1 << 16, counts)


def _lose(attacker: Attacker, ready: selectors.BaseSelector, counts: Counter[str]) -> None:
    found = attacker.socket
    assert found is not None
    ready.unregister(found)
    found.close()
    counts[attacker.kind.name] += 1
    attacker.socket, attacker.due = None, time.monotonic() + AGAIN


def _swallow(found: socket.socket, ready: selectors.BaseSelector) -> None:
    try:
        taken, _ = found.accept()
    except BlockingIOError:
        return
    except OSError:  # a connection of the sink
        try:
            part = found.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            part = b""
        if not part:
            ready.unregister(found)
            found.close()
        return
    taken.setblocking(False)
    ready.register(taken, selectors.EVENT_READ, None)


if __name__ == "__main__":
    attack(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
