"""Connections of the service: bounded heads, and answers that leave at once."""

from __future__ import annotations

import asyncio
import socket

from uvicorn.protocols.http.h11_impl import H11Protocol


class Connection(H11Protocol):
    """Requests of one client, whose answers do not wait for its acknowledgements.

    uvicorn writes the head and the body of an answer one after the other. Where workers share a
    socket that it has bound, asyncio leaves Nagle's algorithm on (the socket names no protocol),
    and the body waits for the client to acknowledge the head: about 40 ms on Linux, which is many
    times what an answer takes. This is h11 whatever else is installed, because only h11 bounds
    the size of a head.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begins; ``transport`` is the new connection."""
        connected = transport.get_extra_info("socket")
        if connected is not None and connected.family in (socket.AF_INET, socket.AF_INET6):
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)
