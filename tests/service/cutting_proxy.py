"""A proxy that passes a reply on up to a byte, and cuts the connection there."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def cutting(target: str, cut: Callable[[int], int | None]) -> Iterator[str]:
    """A proxy that cuts a connection after ``cut(n)`` bytes of the n-th reply; None for no cut."""
    host, port = target.removeprefix("http://").split(":")
    listener = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()
    seen = 0

    def serve(here: socket.socket, limit: int | None) -> None:
        with here, socket.create_connection((host, int(port))) as there:
            here.settimeout(20)
            there.settimeout(20)
            request = b""
            while b"\r\n\r\n" not in request:
                request += here.recv(65536) or b"\r\n\r\n"
            head, _, body = request.partition(b"\r\n\r\n")
            lines = head.lower().split(b"\r\n")
            size = next((int(line[15:]) for line in lines if line.startswith(b"content-length")), 0)
            while len(body) < size:
                body += here.recv(65536)
            there.sendall(head + b"\r\nConnection: close\r\n\r\n" + body)
            sent = 0
            while piece := there.recv(65536):
                left = len(piece) if limit is None else max(0, limit - sent)
                here.sendall(piece[:left])
                sent += len(piece)
                if limit is not None and sent >= limit:
                    return

    def accept() -> None:
        nonlocal seen
        while not ended.is_set():
            try:
                here, _ = listener.accept()
            except OSError:
                return
            limit, seen = cut(seen), seen + 1
            threading.Thread(target=serve, args=(here, limit), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        ended.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(timeout=5)
