"""The outermost layer: every request gets a name, a bound, one shape of error, one line of log."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from reticent.core.errors import ServiceBusy
from reticent.service.logs import fault, say
from reticent.service.metrics import Metrics
from reticent.service.problems import CONTENT_TYPE, Problem, RequestRefused

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_ALWAYS = ("/healthz",)
_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)


class Admission:
    """How many requests one worker holds at once, in all and for each key.

    It counts what is in this process now, and no answers: those are counted in the ledger.

    Args:
        most: in all.
        per_key: for one key.
    """

    def __init__(self, *, most: int, per_key: int) -> None:
        self._most, self._per_key = most, per_key
        self._held: Counter[str] = Counter()
        self.held = 0

    @contextmanager
    def one(self) -> Iterator[None]:
        """Holds a request while its block runs.

        Raises:
            ServiceBusy: there are too many.
        """
        if self.held >= self._most:
            raise ServiceBusy(
                f"the service holds {self._most} requests already; nothing was charged. Repeat "
                "the request a little later"
            )
        self.held += 1
        try:
            yield
        finally:
            self.held -= 1

    @contextmanager
    def one_of(self, key: str) -> Iterator[None]:
        """Holds a request of ``key`` while its block runs.

        Raises:
            ServiceBusy: it has too many.
        """
        if self._held[key] >= self._per_key:
            raise ServiceBusy(
                f"this key has {self._per_key} requests under way already; nothing was charged. "
                "Repeat the request a little later"
            )
        self._held[key] += 1
        try:
            yield
        finally:
            self._held[key] -= 1
            if not self._held[key]:
                del self._held[key]


class Edge:
    """ASGI middleware around everything else.

    Args:
        app: what answers.
        admission, metrics: of this worker.
    """

    def __init__(self, app: ASGIApp, *, admission: Admission, metrics: Metrics) -> None:
        self._app, self._admission, self._metrics = app, admission, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request, or refuses it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        name, started, status = token_hex(8), time.perf_counter(), 0
        scope.setdefault("state", {})["request"] = name

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message["headers"],
                    *_HEADERS,
                    (b"x-request-id", name.encode()),
                ]
            await send(message)

        try:
            if scope["path"] in _ALWAYS:
                await self._app(scope, receive, noting)
            else:
                with self._admission.one():
                    _check_headers(scope)
                    await self._app(scope, receive, noting)
        except Exception as error:
            # Nothing of it may reach the server above, which would log its message.
            problem = Problem.of(error)
            if problem.status == 500:
                say("fault", level=logging.ERROR, request=name, **fault(error))
            if not status:
                await send_problem(problem, name, noting)
        seconds = time.perf_counter() - started
        route = _route(scope)
        self._metrics.request(route, status, seconds)
        self._metrics.held(self._admission.held)
        say(
            "request",
            request=name,
            route=route,
            method=scope["method"] if scope["method"] in _METHODS else "other",
            status=status,
            milliseconds=round(seconds * 1000, 1),
            **scope["state"].get("fields", {}),
        )


_METHODS = ("GET", "POST", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS")


async def send_problem(problem: Problem, name: str, send: Send) -> None:
    """Sends a problem as the whole response."""
    body = problem.body(name)
    headers = {
        "content-type": CONTENT_TYPE,
        "content-length": str(len(body)),
        **{key.lower(): value for key, value in problem.headers.items()},
    }
    await send(
        {
            "type": "http.response.start",
            "status": problem.status,
            "headers": [(key.encode(), value.encode()) for key, value in headers.items()],
        }
    )
    await send({"type": "http.response.body", "body": body})


async def read_body(
    headers: Mapping[str, str], receive: Receive, *, most: int, seconds: float
) -> bytes:
    """The body of a request, within its bounds.

    Args:
        headers: of the request, by names in any case.
        receive: gives the parts of its body.
        most: bytes.
        seconds: until it must be there whole.

    Raises:
        RequestRefused: longer, slower, cut off, or without a length.
    """
    stated = headers.get("content-length")
    if stated is None:
        raise RequestRefused(411, "Content-Length: expected the number of bytes of the body")
    if not stated.isascii() or not stated.isdigit() or len(stated) > 12 or int(stated) > most:
        raise RequestRefused(413, f"Content-Length: expected at most {most} bytes")
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RequestRefused(415, "Content-Type: expected application/json")
    parts, size, more = [], 0, True
    try:
        async with asyncio.timeout(seconds):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise RequestRefused(400, "body: expected it whole, got a part")
                part, more = message.get("body", b""), message.get("more_body", False)
                size += len(part)
                if size > most:
                    raise RequestRefused(413, f"body: expected at most {most} bytes")
                parts.append(part)
    except TimeoutError:
        raise RequestRefused(408, f"body: expected it whole within {seconds:g} s") from None
    return b"".join(parts)


def _check_headers(scope: Scope) -> None:
    for name, value in scope["headers"]:
        if name == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
            raise RequestRefused(415, "Content-Encoding: expected a body that is not compressed")


def _route(scope: Scope) -> str:
    endpoint: Any = scope.get("endpoint")
    return getattr(endpoint, "__name__", "none")
