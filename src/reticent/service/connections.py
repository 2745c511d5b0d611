"""Connections of the service: their number, the time each may take, and answers without delay."""

from __future__ import annotations

import asyncio
import resource
import socket
from secrets import token_hex
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from reticent.core.errors import InvalidInput
from reticent.service.logs import say
from reticent.service.problems import CONTENT_TYPE, Problem, RequestRefused
from reticent.service.settings import Listening

_READ = 2**16
"""Bytes that are read at once, and so what a client can leave here that sends requests and reads no
answer; asyncio itself takes four times as many.
"""

_UNSENT = 2**16
"""Bytes of answers that the system holds for a client, about. By itself Linux takes 4 MB, which is
two hundred answers to somebody who reads none.
"""

_SLOWEST = 2**16
"""Bytes of an answer that a client must take within each span of the time limit."""

_LINGER = 2.0
"""Seconds for which the rest of a body that was refused is still read, and thrown away: a client
that writes and does not read would otherwise lose the refusal.
"""

_REST = 2**18
"""Bytes of such a rest that are read at most; then it is not read, until the connection is cut. To
throw away 16 MiB takes as long as to answer several requests.
"""

_OTHER_FILES = 192
"""Descriptors that a worker needs beside its connections."""


class Door:
    """The bounds of one worker's connections, and the open connections.

    If all places are taken, one address loses its oldest connection. It is the address with the
    most connections that have shown no valid key. So whoever opens many displaces himself. uvicorn
    calls this for each new connection.

    Args:
        most: connections in all.
        per_address: connections of one address that have shown no valid key.
        head: seconds from the first byte of a head, or from the connection, to the head's end.
        body: seconds from the end of a head to the end of its body.
        send: seconds within which a client must take the next part of an answer.
    """

    def __init__(
        self, *, most: int, per_address: int, head: float, body: float, send: float
    ) -> None:
        self.most, self.per_address = most, per_address
        self.head, self.body, self.send = head, body, send
        self._all: set[Connection] = set()
        # By address, in the order in which they came.
        self._strangers: dict[str, dict[Connection, None]] = {}

    @classmethod
    def of(cls, settings: Listening) -> Door:
        """Return the door that ``settings`` describe."""
        return cls(
            most=settings.connections,
            per_address=settings.connections if settings.behind_proxy else settings.per_address,
            head=settings.head,
            # A body that is late is told so first, by whoever reads it.
            body=settings.deadline + 1.0,
            send=settings.send,
        )

    def __call__(self, **given: Any) -> Connection:
        """Return what handles a new connection, as uvicorn wants it."""
        return Connection(self, **given)

    def enter(self, connection: Connection, address: str) -> bool:
        """Give a new connection a place, and return whether there was one."""
        mine = self._strangers.get(address, {})
        if len(mine) >= self.per_address:
            return False
        if len(self._all) >= self.most:
            most = max(self._strangers.values(), key=len, default=None)
            if most is None:
                return False
            first = next(iter(most))
            self.leave(first)
            first.cut()
        self._all.add(connection)
        connection.address = address
        self._strangers.setdefault(address, {})[connection] = None
        return True

    def vouch(self, connection: Connection) -> None:
        """Note that a connection has shown a valid key."""
        mine = self._strangers.get(connection.address)
        if mine is not None and mine.pop(connection, self) is None and not mine:
            del self._strangers[connection.address]

    def leave(self, connection: Connection) -> None:
        """Give a connection's place back."""
        self._all.discard(connection)
        self.vouch(connection)


class Connection(H11Protocol):
    """The requests of one client, each bounded in size and time.

    A head has a deadline from its first byte, a body from the end of its head, and an answer from
    the first byte that the client does not take. Whoever misses one is cut off.

    Answers do not wait for acknowledgements. uvicorn writes the head and the body of an answer one
    after the other. Where workers share a socket that it has bound, asyncio leaves Nagle's
    algorithm on (the socket names no protocol). The body then waits for the client to acknowledge
    the head: about 40 ms on Linux, many times what an answer takes. This is h11 whatever
    else is installed, because only h11 bounds the size of a head.
    """

    def __init__(self, door: Door, **given: Any) -> None:
        super().__init__(**given)
        self.address = ""
        self._door = door
        self._rest = 0
        self._awaited: tuple[object, str] | None = None
        self._late: asyncio.TimerHandle | None = None
        self._stuck: asyncio.TimerHandle | None = None
        # Whatever answers a request can say that its key is valid.
        self.app_state = {**self.app_state, "vouch": self.vouch}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to serve the new connection ``transport``."""
        super().connection_made(transport)
        # Every byte that the client does not take counts as one that it was sent and did not read.
        transport.set_write_buffer_limits(0)
        transport.max_size = _READ  # type: ignore[attr-defined]
        connected = transport.get_extra_info("socket")
        if connected is not None and connected.family in (socket.AF_INET, socket.AF_INET6):
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _UNSENT)
        peer = transport.get_extra_info("peername")
        if not self._door.enter(self, str(peer[0]) if isinstance(peer, tuple) else ""):
            self.cut()
            return
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """End, and give the place back."""
        self._door.leave(self)
        for timer in (self._late, self._stuck):
            if timer is not None:
                timer.cancel()
        self._late = self._stuck = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes of the client."""
        if self.transport.is_closing():
            return
        if self._is_refused():
            self._rest += len(data)
            if self._rest > _REST:
                self.transport.pause_reading()
                return
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Go on with what came behind the request that is answered."""
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        """Begin to wait for a client that does not read."""
        super().pause_writing()
        self._look_again(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Stop waiting: the client has read everything."""
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None
        super().resume_writing()

    def vouch(self) -> None:
        """Note that this client has shown a valid key."""
        self._door.vouch(self)

    def cut(self) -> None:
        """Close the connection at once, whatever is under way."""
        self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP, in the shape of every other error."""
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.cut()
            return
        name = token_hex(8)
        refused = RequestRefused(400, "request: expected HTTP/1.1 with a head of at most 32 KiB")
        content = Problem.of(refused).body(name)
        headers = [
            ("content-type", CONTENT_TYPE),
            ("content-length", str(len(content))),
            ("cache-control", "no-store"),
            ("x-content-type-options", "nosniff"),
            ("x-request-id", name),
            ("connection", "close"),
        ]
        events = (
            h11.Response(status_code=400, headers=headers, reason="Bad Request"),
            h11.Data(data=content),
            h11.EndOfMessage(),
        )
        self.transport.write(b"".join(self.conn.send(event) or b"" for event in events))
        self.transport.close()
        say("request", request=name, route="none", method="other", status=400)

    def _watch(self) -> None:
        """Set the deadline of what the client sends next, where it is another than before."""
        if self.transport.is_closing():
            return
        state, awaited, seconds = self.conn.their_state, None, 0.0
        if state is h11.IDLE and (self.cycle is None or self.conn.trailing_data[0]):
            awaited, seconds = (self.cycle, "head"), self._door.head
        elif state is h11.SEND_BODY:
            refused = self._is_refused()
            awaited = (self.cycle, "rest" if refused else "body")
            seconds = _LINGER if refused else self._door.body
        if awaited == self._awaited:
            return
        self._awaited = awaited
        if self._late is not None:
            self._late.cancel()
        self._late = None if awaited is None else self.loop.call_later(seconds, self.cut)

    def _is_refused(self) -> bool:
        """Return whether a request was answered before all of it had come."""
        answered = self.cycle is not None and self.cycle.response_complete
        return answered and self.conn.their_state is h11.SEND_BODY

    def _look_again(self, before: int) -> None:
        """Cut a client off that has not taken enough since there were ``before`` bytes."""

        def look() -> None:
            left = self.transport.get_write_buffer_size()
            if left > max(0, before - _SLOWEST):
                self.cut()
            else:
                self._look_again(left)

        self._stuck = self.loop.call_later(self._door.send, look)


def check_descriptors(connections: int) -> None:
    """Raise this process's limit of open files to what its connections need.

    Raises:
        InvalidInput: the operating system allows fewer.
    """
    needed = connections + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= needed or soft == resource.RLIM_INFINITY:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise InvalidInput(
            f"connections={connections}: need {needed} open files, and the system allows {hard}; "
            "expected fewer connections, or a higher limit (ulimit -n)"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
