"""Clients of one HTTP server that cost it little of its processor: one thread, one socket each,
requests made of bytes beforehand, and of the responses no more read than status and length.

A load generator shares its machine with what it loads; threads of a full HTTP client take as much
time a request as the server does.
"""

from __future__ import annotations

import heapq
import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field

_END = b"\r\n\r\n"
_LENGTH = b"content-length:"


@dataclass
class Loaded:
    """What clients have seen.

    Attributes:
        lasted: seconds on the clock.
        busy: processor seconds of the clients themselves.
        times: seconds from a request's first byte to its answer's last, by status.
    """

    lasted: float = 0.0
    busy: float = 0.0
    times: dict[int, list[float]] = field(default_factory=dict)


@dataclass
class _Client:
    socket: socket.socket
    sent: float = 0.0
    got: bytearray = field(default_factory=bytearray)


def load(
    port: int,
    request: Callable[[], bytes],
    *,
    clients: int,
    seconds: float,
    rest: float = 0.0,
) -> Loaded:
    """Lets ``clients`` ask one request after the other for ``seconds``, and waits for the answers.

    Args:
        port: of the server, on this machine.
        request: bytes of the next request, head and body.
        clients: connections, kept open.
        seconds: for which requests are begun.
        rest: seconds that a client waits after 429.
    """
    told = Loaded()
    with selectors.DefaultSelector() as ready:
        all_clients = [
            _Client(socket.create_connection(("127.0.0.1", port))) for _ in range(clients)
        ]
        for client in all_clients:
            client.socket.setblocking(False)
            client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ready.register(client.socket, selectors.EVENT_READ, client)
        began, used = time.perf_counter(), time.process_time()
        end = began + seconds
        resting: list[tuple[float, int]] = [(began, place) for place in range(clients)]
        under_way = 0
        while under_way or (resting and time.perf_counter() < end):
            now = time.perf_counter()
            while resting and resting[0][0] <= now < end:
                client = all_clients[heapq.heappop(resting)[1]]
                _send(client, request())
                under_way += 1
            wait = max(0.0, min(resting[0][0], end) - now) if resting and now < end else None
            for key, _ in ready.select(wait):
                client = key.data
                status = _receive(client)
                if status is None:
                    continue
                under_way -= 1
                now = time.perf_counter()
                told.times.setdefault(status, []).append(now - client.sent)
                if now < end:
                    if status == 429 and rest:
                        heapq.heappush(resting, (now + rest, all_clients.index(client)))
                    else:
                        _send(client, request())
                        under_way += 1
        told.lasted, told.busy = time.perf_counter() - began, time.process_time() - used
        for client in all_clients:
            client.socket.close()
    return told


def _send(client: _Client, content: bytes) -> None:
    client.sent = time.perf_counter()
    client.socket.setblocking(True)  # a request that fills the buffer of the kernel is waited for
    client.socket.sendall(content)
    client.socket.setblocking(False)


def _receive(client: _Client) -> int | None:
    """The status of the answer, once it is there whole."""
    try:
        part = client.socket.recv(1 << 18)
    except BlockingIOError:
        return None
    if not part:
        raise SystemExit("the server closed a connection")
    got = client.got
    got += part
    end = got.find(_END)
    if end < 0:
        return None
    head = bytes(got[:end]).lower()
    start = head.index(_LENGTH) + len(_LENGTH)
    length = int(head[start : head.find(b"\r\n", start) if b"\r\n" in head[start:] else None])
    if len(got) < end + len(_END) + length:
        return None
    status = int(got[9:12])
    got.clear()
    return status
