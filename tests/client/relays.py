"""A server in between a client and a service, which changes what it passes on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

Change = Callable[[str, bytes], bytes | None]


@contextmanager
def relayed(target: str, change: Change) -> Iterator[tuple[str, list[bytes]]]:
    """A server in between that changes replies, or loses them (None); and what it was sent."""
    seen: list[bytes] = []

    class Relay(BaseHTTPRequestHandler):
        def answer(self) -> None:
            size = int(self.headers.get("content-length") or 0)
            body = self.rfile.read(size)
            seen.append(self.requestline.encode() + body)
            names = ("authorization", "content-type", "idempotency-key", "request-nonce")
            headers = {name: self.headers[name] for name in names if name in self.headers}
            # As a proxy it is sent whole addresses; what it sends itself takes no other proxy.
            with httpx.Client(trust_env=False, timeout=30) as client:
                reply = client.request(
                    self.command,
                    target + self.path.removeprefix(target),
                    content=body,
                    headers=headers,
                )
            content = change(self.path, reply.content)
            changed = content is not None and content != reply.content
            self.send_response(404 if content is None else 200 if changed else reply.status_code)
            self.send_header("content-length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

        do_GET = do_POST = answer  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Relay)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)
