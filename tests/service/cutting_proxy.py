"""A proxy that passes a reply on up to a byte, and cuts the connection there."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Self


class CuttingProxy:
    """Between clients and a server on this machine.

    Args:
        port: of the server.

    Attributes:
        url: where clients connect.
        cut_after: bytes of the next reply that are let through; None for all.
        cuts: connections that were cut so far.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self.cut_after: int | None = None
        self.cuts = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(10)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            with near, socket.create_connection(("127.0.0.1", self._port)) as far:
                self._pass(near, far)

    def _pass(self, near: socket.socket, far: socket.socket) -> None:
        """One request and its reply, at most."""
        forward = threading.Thread(target=_copy, args=(near, far), daemon=True)
        forward.start()
        passed = 0
        while part := far.recv(4096):
            if self.cut_after is not None and passed + len(part) > self.cut_after:
                near.sendall(part[: self.cut_after - passed])
                self.cuts += 1
                break
            near.sendall(part)
            passed += len(part)
        for one in (near, far):
            with contextlib.suppress(OSError):  # the other end has gone
                one.shutdown(socket.SHUT_RDWR)
        forward.join(10)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):  # cut
        while part := source.recv(4096):
            target.sendall(part)
        target.shutdown(socket.SHUT_WR)
